"""One module a grader: evidence in, grade out."""
