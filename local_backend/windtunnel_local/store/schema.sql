-- Times: *_us are Unix microseconds, *_ms Unix milliseconds, both UTC.

-- What lists show and filter by. The long texts of a job are in a table of their own, so that a scan
-- of this table reads a few hundred bytes a job.
CREATE TABLE jobs (
    name              TEXT    PRIMARY KEY,
    arn               TEXT    NOT NULL UNIQUE,
    status            TEXT    NOT NULL,
    secondary         TEXT    NOT NULL,
    created_us        INTEGER NOT NULL,
    modified_us       INTEGER NOT NULL,
    ended_us          INTEGER,                   -- TrainingEndTime
    warm_pool_status  TEXT
);

-- One index for each sort order, with all columns that filters of ListTrainingJobs read: rows that do
-- not match are skipped within the index.
CREATE INDEX jobs_by_name ON jobs (name, status, created_us, modified_us, warm_pool_status);
CREATE INDEX jobs_by_creation ON jobs (created_us, name, status, modified_us, warm_pool_status);
CREATE INDEX jobs_by_status ON jobs (status, name, created_us, modified_us, warm_pool_status);
CREATE INDEX jobs_by_status_creation ON jobs (status, created_us, name, modified_us, warm_pool_status);
CREATE INDEX jobs_by_modification ON jobs (modified_us, name, status, created_us);
CREATE INDEX jobs_by_warm_pool ON jobs (warm_pool_status, created_us, name, status, modified_us)
    WHERE warm_pool_status IS NOT NULL;

CREATE TABLE job_documents (
    name     TEXT PRIMARY KEY REFERENCES jobs (name) ON DELETE CASCADE,
    request  TEXT NOT NULL,   -- JSON: CreateTrainingJob's members, without Tags
    record   TEXT NOT NULL    -- JSON: the lifecycle and what became of the job
);

CREATE TABLE tags (
    arn    TEXT NOT NULL REFERENCES jobs (arn) ON DELETE CASCADE,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (arn, key)
) WITHOUT ROWID;

-- Models, endpoint configurations, endpoints, transform jobs: some hundreds, so lists are made by walking a kind.
CREATE TABLE resources (
    kind         TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    arn          TEXT    NOT NULL,
    created_us   INTEGER NOT NULL,
    modified_us  INTEGER NOT NULL,
    status       TEXT,
    request      TEXT    NOT NULL,   -- JSON: what it was made of, without Tags
    record       TEXT    NOT NULL,   -- JSON: what has become of it
    tags         TEXT    NOT NULL,   -- JSON
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- Requests of InvokeEndpointAsync that have no answer yet, in their order.
CREATE TABLE invocations (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT    NOT NULL UNIQUE,
    endpoint  TEXT    NOT NULL,
    question  TEXT    NOT NULL   -- JSON
);

CREATE INDEX invocations_by_endpoint ON invocations (endpoint, number);

-- A stream whose job was deleted has neither job nor name; its lines are removed bit by bit. One of an
-- endpoint or a transform job has no job, and a name that begins with a slash.
CREATE TABLE log_streams (
    id                 INTEGER PRIMARY KEY,
    name               TEXT    UNIQUE,
    job                TEXT    REFERENCES jobs (name) ON DELETE SET NULL,
    host               TEXT    NOT NULL,
    created_ms         INTEGER NOT NULL,
    first_event_ms     INTEGER,
    last_event_ms      INTEGER,
    last_ingestion_ms  INTEGER,
    events             INTEGER NOT NULL DEFAULT 0,
    cursor             TEXT,                       -- where the runner resumes; written with the lines
    scanned            INTEGER NOT NULL DEFAULT 0  -- how many lines were searched for metrics; written with them
);

CREATE INDEX log_streams_by_job ON log_streams (job);
CREATE INDEX log_streams_by_first_event ON log_streams (first_event_ms, id, name, last_event_ms);
CREATE INDEX log_streams_by_last_event ON log_streams (ifnull(last_event_ms, 0), name);

-- Within a stream, times never decrease and sequence numbers have no gaps: a time is found by binary search.
CREATE TABLE IF NOT EXISTS log_events (
    stream        INTEGER NOT NULL REFERENCES log_streams (id) ON DELETE CASCADE,
    sequence      INTEGER NOT NULL,                -- 0, 1, 2, ... within the stream
    timestamp_ms  INTEGER NOT NULL,
    ingestion_ms  INTEGER NOT NULL,
    message       TEXT    NOT NULL,
    PRIMARY KEY (stream, sequence)
) WITHOUT ROWID;

CREATE TABLE metric_series (
    id                 INTEGER PRIMARY KEY,
    job                TEXT    NOT NULL REFERENCES jobs (name) ON DELETE CASCADE,
    name               TEXT    NOT NULL,
    last_timestamp_ms  INTEGER NOT NULL,
    last_value         REAL    NOT NULL,
    UNIQUE (job, name)
);

CREATE TABLE metric_values (
    id            INTEGER PRIMARY KEY,
    series        INTEGER NOT NULL REFERENCES metric_series (id) ON DELETE CASCADE,
    timestamp_ms  INTEGER NOT NULL,
    value         REAL    NOT NULL
);

CREATE INDEX metric_values_by_time ON metric_values (series, timestamp_ms, value);

-- One row a minute; counts: JSON, pairs of a value and how often it occurred. Rows outlive their endpoint.
CREATE TABLE endpoint_metrics (
    endpoint   TEXT    NOT NULL,
    variant    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    minute_ms  INTEGER NOT NULL,
    counts     TEXT    NOT NULL
);

CREATE INDEX endpoint_metrics_by_time ON endpoint_metrics (endpoint, variant, name, minute_ms);

-- When this record was created; also the creation time of its one log group.
CREATE TABLE home (
    created_ms  INTEGER NOT NULL
);

INSERT INTO home (created_ms) VALUES (CAST(strftime('%s', 'now') AS INTEGER) * 1000);
