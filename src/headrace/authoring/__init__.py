"""Front ends: what users write, compiled into definitions."""
