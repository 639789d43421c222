provider pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp { }; /* error: D_PROV_BADNAME */
