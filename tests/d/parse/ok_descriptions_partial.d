entry, open:entry, mod:open:entry { }
