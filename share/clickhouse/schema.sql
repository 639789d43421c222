-- Tables for the events of `dtap serve` (an output "clickhouse"; dtap-serve(1)), for ClickHouse 18.16 and later:
--
--	clickhouse-client --multiquery < schema.sql
--
-- An event is known by host, boot, run and seq.  The service sends a batch again when it does not know whether it has
-- arrived, so a row can come twice.  The tables keep one row of a key in the end (ReplacingMergeTree), and the views
-- "..._once" have one at every moment: ask these.  Numbers of a run have no gaps: a missing one is an event that was lost
-- (the view gaps).

CREATE DATABASE IF NOT EXISTS dtap;

CREATE TABLE IF NOT EXISTS dtap.events
(
	time DateTime,
	ns UInt32,
	host String,
	boot String,
	run String,
	seq UInt64,
	script String,
	hash String,
	unit String,
	container String,
	interpreter String,
	provider String,
	module String,
	function String,
	probe String,
	pid UInt32,
	tid UInt32,
	text String,
	names Array(String),
	texts Array(String),
	numbers Array(Float64)
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(time)
ORDER BY (host, boot, run, seq);

CREATE VIEW IF NOT EXISTS dtap.events_once AS SELECT * FROM dtap.events FINAL;

-- What the scripts of serve.yaml send, with a column for each field.  A materialised view is filled by what is inserted,
-- rows that come twice too, so its table is of the same kind.  A field that a script does not send is "" or 0.

CREATE TABLE IF NOT EXISTS dtap.calls
(
	time DateTime, host String, boot String, run String, seq UInt64, unit String, container String,
	interpreter String, release String, pid UInt32,
	function String, module String, took_ns Float64, end String
)
ENGINE = ReplacingMergeTree PARTITION BY toDate(time) ORDER BY (host, boot, run, seq);

CREATE MATERIALIZED VIEW IF NOT EXISTS dtap.calls_of_events TO dtap.calls AS
SELECT time, host, boot, run, seq, unit, container, interpreter,
	texts[indexOf(names, 'release')] AS release, pid,
	texts[indexOf(names, 'function')] AS function, texts[indexOf(names, 'module')] AS module,
	numbers[indexOf(names, 'duration')] AS took_ns, texts[indexOf(names, 'end')] AS end
FROM dtap.events WHERE script = 'calls';

CREATE TABLE IF NOT EXISTS dtap.exceptions
(
	time DateTime, host String, boot String, run String, seq UInt64, unit String, container String,
	interpreter String, release String, pid UInt32,
	type String, file String, function String, line UInt32
)
ENGINE = ReplacingMergeTree PARTITION BY toDate(time) ORDER BY (host, boot, run, seq);

CREATE MATERIALIZED VIEW IF NOT EXISTS dtap.exceptions_of_events TO dtap.exceptions AS
SELECT time, host, boot, run, seq, unit, container, interpreter,
	texts[indexOf(names, 'release')] AS release, pid,
	texts[indexOf(names, 'type')] AS type, texts[indexOf(names, 'file')] AS file,
	texts[indexOf(names, 'function')] AS function, toUInt32(numbers[indexOf(names, 'line')]) AS line
FROM dtap.events WHERE script = 'exceptions';

CREATE TABLE IF NOT EXISTS dtap.pauses
(
	time DateTime, host String, boot String, run String, seq UInt64, unit String, container String,
	interpreter String, release String, pid UInt32,
	generation UInt8, took_ns Float64, objects Float64
)
ENGINE = ReplacingMergeTree PARTITION BY toDate(time) ORDER BY (host, boot, run, seq);

CREATE MATERIALIZED VIEW IF NOT EXISTS dtap.pauses_of_events TO dtap.pauses AS
SELECT time, host, boot, run, seq, unit, container, interpreter,
	texts[indexOf(names, 'release')] AS release, pid,
	toUInt8(numbers[indexOf(names, 'generation')]) AS generation, numbers[indexOf(names, 'took')] AS took_ns,
	numbers[indexOf(names, 'objects')] AS objects
FROM dtap.events WHERE script = 'pauses';

CREATE VIEW IF NOT EXISTS dtap.calls_once AS SELECT * FROM dtap.calls FINAL;
CREATE VIEW IF NOT EXISTS dtap.exceptions_once AS SELECT * FROM dtap.exceptions FINAL;
CREATE VIEW IF NOT EXISTS dtap.pauses_once AS SELECT * FROM dtap.pauses FINAL;

-- Events that did not arrive, by the run of a service: at the end, or while they are on their way, more may be missing.
CREATE VIEW IF NOT EXISTS dtap.gaps AS
SELECT host, boot, run, max(seq) + 1 - uniqExact(seq) AS missing, min(time) AS first, max(time) AS last
FROM dtap.events GROUP BY host, boot, run;
