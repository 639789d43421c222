-- The ten questions that one asks.  Each begins with its name.

-- slowest functions by release
SELECT release, module, function, count() AS calls, quantile(0.99)(took_ns) / 1e6 AS p99_ms, sum(took_ns) / 1e9 AS total_s
FROM dtap.calls_once GROUP BY release, module, function ORDER BY total_s DESC, release, module, function LIMIT 20;

-- functions that became slower from one release to the next
SELECT module, function, release, quantile(0.5)(took_ns) / 1e6 AS median_ms
FROM dtap.calls_once GROUP BY module, function, release ORDER BY module, function, release;

-- slow calls by host
SELECT host, count() AS calls, max(took_ns) / 1e6 AS longest_ms
FROM dtap.calls_once GROUP BY host ORDER BY calls DESC, host;

-- exceptions by place
SELECT type, file, line, function, count() AS times
FROM dtap.exceptions_once GROUP BY type, file, line, function ORDER BY times DESC, type, file, line LIMIT 50;

-- exceptions by release
SELECT release, type, count() AS times
FROM dtap.exceptions_once GROUP BY release, type ORDER BY times DESC, release, type;

-- calls that ended by an exception, by function
SELECT module, function, countIf(end = 'raise') AS raised, count() AS calls
FROM dtap.calls_once GROUP BY module, function HAVING raised > 0 ORDER BY raised DESC, module, function;

-- garbage collections by host
SELECT host, generation, count() AS pauses, sum(took_ns) / 1e6 AS total_ms, max(took_ns) / 1e6 AS longest_ms
FROM dtap.pauses_once GROUP BY host, generation ORDER BY total_ms DESC, host, generation;

-- longest pauses by unit and process
SELECT host, unit, pid, max(took_ns) / 1e6 AS longest_ms, sum(objects) AS objects
FROM dtap.pauses_once GROUP BY host, unit, pid ORDER BY longest_ms DESC, host, unit, pid LIMIT 20;

-- events by script, host and minute
SELECT toStartOfMinute(time) AS minute, host, script, count() AS events
FROM dtap.events_once GROUP BY minute, host, script ORDER BY minute, host, script;

-- what was lost
SELECT host, run, missing, first, last FROM dtap.gaps ORDER BY missing DESC, host, run;
