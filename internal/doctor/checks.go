package doctor

// What is looked for. The table of docs/setup.md says of each why it matters.
var (
	DBServer     = Check{"db-server", Error, "let the service reach and read its database"}
	DBFamily     = Check{"db-family", Warning, "give the models a dbguard.Stamp, or serve requests with guard.For or guard.Once: these prove a commit, unless the server commits shards one by one"}
	DBModel      = Check{"db-model", Error, "change the table as the finding says"}
	DBVersion    = Check{"db-version", Warning, "make the version column a BIGINT NOT NULL"}
	DBCollation  = Check{"db-collation", Warning, "convert the key in the program to one form, or give the column a binary collation"}
	DBIsolation  = Check{"db-isolation", Warning, "leave it at REPEATABLE READ on MySQL and MariaDB, at READ COMMITTED on PostgreSQL"}
	DBBehind     = Check{"db-behind", Warning, "set wsrep_sync_wait = 1 with Galera, group_replication_consistency = BEFORE with group replication"}
	DBDurability = Check{"db-durability", Warning, "set what the finding names, or accept that a crash may undo what was reported as done"}
	DBBinlog     = Check{"db-binlog", Error, "set binlog_format to ROW or MIXED"}
	DBOutcome    = Check{"db-outcome", Warning, "give the service's user what the finding names"}
	DBAutocommit = Check{"db-autocommit", Warning, "set autocommit = 1 and completion_type = NO_CHAIN, in the DSN or on the server"}
	DBPool       = Check{"db-pool", Warning, "call SetMaxOpenConns and SetMaxIdleConns with the number of operations that may be in a transaction at a time"}
	DBTimeouts   = Check{"db-timeouts", Warning, "bound each wait for the database: timeout=5s&readTimeout=30s&writeTimeout=30s&innodb_lock_wait_timeout=20 in the DSN of MySQL; connect_timeout=5 in the URL of PostgreSQL, statement_timeout and idle_in_transaction_session_timeout for its role"}
	DBRequests   = Check{"db-requests", Error, "run once.Migrate, or its SQL, and grant the service its tables"}
	DBCalls      = Check{"db-calls", Error, "run once.MigrateCalls, or its SQL, and grant the service its table"}
	DBMessages   = Check{"db-messages", Error, "run relay.Migrate, or its SQL, and grant the service its tables"}
	DBClock      = Check{"db-clock", Warning, "run NTP on all hosts"}

	RedisServer   = Check{"redis-server", Error, "let the service reach each node, with the address, the credentials and the certificates of its kind of Redis"}
	RedisRights   = Check{"redis-rights", Error, "grant what the finding names: the documentation of package redislock has the whole ACL line"}
	RedisRejects  = Check{"redis-rejects", Error, "give the server memory, a disk that it can write, and as many replicas as min-replicas-to-write and redislock.Config.Replicas ask for"}
	RedisScripts  = Check{"redis-scripts", Error, "connect to an endpoint that runs EVAL and EVALSHA; if a proxy rejects the text of a script, to one without that check, or turn it off (script_check_enable = 0 at Aliyun)"}
	RedisEviction = Check{"redis-eviction", Error, "first raise maxmemory or move caches to another Redis, then set maxmemory-policy to noeviction: with it, a Redis that is full grants no lock"}
	RedisReplicas = Check{"redis-replicas", Warning, "give each master a replica on another host"}
	RedisCoverage = Check{"redis-coverage", Error, "assign all slots to masters that live: redis-cli --cluster check, then fix"}
	RedisFailover = Check{"redis-failover", Warning, "set cluster-require-full-coverage to no, and cluster-node-timeout to 2000 to 5000"}
	RedisClock    = Check{"redis-clock", Warning, "run NTP on all hosts"}

	LockTTL     = Check{"lock-ttl", Warning, "set lock.Config.TTL to several times the longest pause of a process, or leave it at its default of 30 s"}
	GuardDBOnly = Check{"guard-db-only", Warning, "give these models a unique index or a dbguard.Version, or use guard.FailClosed"}

	EventsBroker  = Check{"events-broker", Error, "let the service reach RabbitMQ, with a user of its virtual host"}
	EventsRights  = Check{"events-rights", Error, "grant services write on belay.events and belay.monitor, and guard-monitor configure, write and read on belay\\..*"}
	EventsQueue   = Check{"events-queue", Error, "start guard-monitor, or run guard-monitor topology"}
	EventsReader  = Check{"events-reader", Warning, "start guard-monitor"}
	EventsOutbox  = Check{"events-outbox", Error, "run outbox.Migrate, or its SQL, and grant the service the table"}
	EventsBacklog = Check{"events-backlog", Warning, "look at belay_rabbitmq_published_total, or belay_webhook_published_total without a broker, by result; after the cause is gone, UPDATE belay_outbox SET retry_at = 0"}

	MonitorServer = Check{"monitor-server", Error, "set Config.Monitor to the address of a guard-monitor with the setting ingest, and let the service reach it"}
	MonitorToken  = Check{"monitor-token", Error, "set Config.MonitorToken to the token of the entry of guard-monitor's setting ingest whose services name this one"}

	MonitorDB  = Check{"monitor-db", Error, "give guard-monitor a disk with room and a file that it may write"}
	MonitorTLS = Check{"monitor-tls", Error, "replace the certificate"}
)

// All are the checks, as the documentation lists them.
var All = []Check{
	DBServer, DBFamily, DBModel, DBVersion, DBCollation, DBIsolation, DBBehind, DBDurability, DBBinlog, DBOutcome, DBAutocommit, DBPool, DBTimeouts, DBRequests, DBCalls, DBMessages, DBClock,
	RedisServer, RedisRights, RedisRejects, RedisScripts, RedisEviction, RedisReplicas, RedisCoverage, RedisFailover, RedisClock,
	LockTTL, GuardDBOnly,
	EventsBroker, EventsRights, EventsQueue, EventsReader, EventsOutbox, EventsBacklog,
	MonitorServer, MonitorToken, MonitorDB, MonitorTLS,
}
