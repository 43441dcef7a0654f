"""Which instances a person should label next."""
