"""What grades texts in a process of its own: `examiner` starts it, bounds it and talks to it.

Nothing here imports pydantic or the rest of boxeval, so that a child starts fast; JSON comes in and goes out.
"""
