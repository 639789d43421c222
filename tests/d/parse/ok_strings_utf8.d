BEGIN { trace("grüß dich"); /* ä */ }
