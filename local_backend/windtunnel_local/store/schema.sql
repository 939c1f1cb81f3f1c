-- Times: *_us are Unix microseconds, *_ms Unix milliseconds, both UTC.

CREATE TABLE jobs (
    name         TEXT    PRIMARY KEY,
    arn          TEXT    NOT NULL UNIQUE,
    status       TEXT    NOT NULL,
    created_us   INTEGER NOT NULL,
    modified_us  INTEGER NOT NULL,
    request      TEXT    NOT NULL,   -- JSON: CreateTrainingJob's members, without Tags
    record       TEXT    NOT NULL    -- JSON: the lifecycle and what became of the job
);

CREATE INDEX jobs_by_creation ON jobs (created_us, name);
CREATE INDEX jobs_by_status ON jobs (status, name);

CREATE TABLE tags (
    arn    TEXT NOT NULL REFERENCES jobs (arn) ON DELETE CASCADE,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (arn, key)
) WITHOUT ROWID;

CREATE TABLE log_streams (
    id                 INTEGER PRIMARY KEY,
    name               TEXT    NOT NULL UNIQUE,
    job                TEXT    NOT NULL REFERENCES jobs (name) ON DELETE CASCADE,
    host               TEXT    NOT NULL,
    created_ms         INTEGER NOT NULL,
    first_event_ms     INTEGER,
    last_event_ms      INTEGER,
    last_ingestion_ms  INTEGER,
    events             INTEGER NOT NULL DEFAULT 0,
    cursor             TEXT                        -- where the runner resumes; written with the lines
);

CREATE INDEX log_streams_by_job ON log_streams (job);

CREATE TABLE log_events (
    stream        INTEGER NOT NULL REFERENCES log_streams (id) ON DELETE CASCADE,
    sequence      INTEGER NOT NULL,                -- 0, 1, 2, ... within the stream, without gaps
    timestamp_ms  INTEGER NOT NULL,
    ingestion_ms  INTEGER NOT NULL,
    message       TEXT    NOT NULL,
    PRIMARY KEY (stream, sequence)
) WITHOUT ROWID;
