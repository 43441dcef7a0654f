"""Where blocks are and who runs the passes over them; no method is written here."""
