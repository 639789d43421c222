BEGIN { x = a - --b; x = a-- - b; x = a - -b; }
