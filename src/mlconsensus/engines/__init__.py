"""Where blocks are and who runs the two passes over them; no method is written here."""
