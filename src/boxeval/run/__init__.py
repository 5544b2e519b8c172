"""The controller: slots, signals, ledger writer."""
