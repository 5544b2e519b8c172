"""Pure decisions: planning, verdicts, metrics. No IO, no clock."""
