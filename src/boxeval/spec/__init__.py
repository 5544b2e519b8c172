"""The frozen types of what a user writes and of what boxeval writes. No IO happens here."""
