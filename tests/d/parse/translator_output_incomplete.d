translator struct nosuch < int x > { }; /* error: D_XLATE_SOU */
