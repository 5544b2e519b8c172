"""boxeval runs untrusted agents and graders in throwaway containers and seals what it saw."""

__version__ = "0.1.0"
