// Package cost measures what one operation costs the servers and this process,
// by their own counters: one caller, one operation after the other.
package cost

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// A Cost is what one operation took on average.
type Cost struct {
	Method     string `json:"method"`
	Case       string `json:"case"` // first or repeat
	Rows       int64  `json:"rows"`
	Operations int    `json:"operations"` // measured at a time

	Micros        float64 `json:"us"` // the median
	ClientCPU     float64 `json:"client_cpu_us"`
	RedisCommands float64 `json:"redis_commands"` // sent by clients; those inside scripts not counted
	RedisIn       float64 `json:"redis_bytes_in"` // by the masters
	RedisOut      float64 `json:"redis_bytes_out"`
	RedisMicros   float64 `json:"redis_us"` // processor time of commands
	Statements    float64 `json:"statements"`
	MySQLIn       float64 `json:"mysql_bytes_in"`
	MySQLOut      float64 `json:"mysql_bytes_out"`
	MySQLCPU      float64 `json:"mysql_cpu_us"`
	Fsyncs        float64 `json:"fsyncs"` // of all files
	Allocations   float64 `json:"allocations"`
	AllocBytes    float64 `json:"alloc_bytes"`
}

// A Figure is one of those that a Cost has.
type Figure struct {
	Name string
	kind kind
	of   func(*Cost) *float64
}

// In returns the figure of c.
func (f Figure) In(c Cost) float64 { return *f.of(&c) }

// Figures returns all figures.
func Figures() []Figure {
	return []Figure{
		{"µs", timed, func(c *Cost) *float64 { return &c.Micros }},
		{"client cpu µs", ticked, func(c *Cost) *float64 { return &c.ClientCPU }},
		{"allocations", counted, func(c *Cost) *float64 { return &c.Allocations }},
		{"alloc B", counted, func(c *Cost) *float64 { return &c.AllocBytes }},
		{"redis commands", counted, func(c *Cost) *float64 { return &c.RedisCommands }},
		{"redis in B", counted, func(c *Cost) *float64 { return &c.RedisIn }},
		{"redis out B", counted, func(c *Cost) *float64 { return &c.RedisOut }},
		{"redis µs", timed, func(c *Cost) *float64 { return &c.RedisMicros }},
		{"statements", counted, func(c *Cost) *float64 { return &c.Statements }},
		{"sql in B", counted, func(c *Cost) *float64 { return &c.MySQLIn }},
		{"sql out B", counted, func(c *Cost) *float64 { return &c.MySQLOut }},
		{"sql cpu µs", ticked, func(c *Cost) *float64 { return &c.MySQLCPU }},
		{"fsyncs", counted, func(c *Cost) *float64 { return &c.Fsyncs }},
	}
}

// A Meter reads the counters.
type Meter struct {
	DB    *sql.DB
	Redis *redis.ClusterClient
	CPU   *measure.Meter // of the groups client and mariadb; nil = not read
}

// Measure runs op n times and returns the cost of one.
func (m Meter) Measure(ctx context.Context, n int, op func(i int) error) (Cost, error) {
	took := make([]float64, n)
	grown, err := m.growth(ctx, func() error {
		for i := range took {
			start := time.Now()
			if err := op(i); err != nil {
				return err
			}
			took[i] = float64(time.Since(start)) / float64(time.Microsecond)
		}
		return nil
	})
	if err != nil {
		return Cost{}, err
	}
	per := func(name string) float64 { return grown[name] / float64(n) }
	return Cost{
		Operations: n, Micros: measure.Median(took), ClientCPU: per("cpu_client"), MySQLCPU: per("cpu_mariadb"),
		RedisCommands: per("redis_commands"), RedisIn: per("redis_in"), RedisOut: per("redis_out"), RedisMicros: per("redis_us"),
		Statements: per("mysql_Questions"), MySQLIn: per("mysql_Bytes_received"), MySQLOut: per("mysql_Bytes_sent"),
		Fsyncs: per("mysql_Innodb_data_fsyncs"), Allocations: per("allocations"), AllocBytes: per("alloc_bytes"),
	}, nil
}

// Count returns how many commands and statements the servers got from all
// clients while f ran.
func (m Meter) Count(ctx context.Context, f func() error) (redisCommands, statements float64, err error) {
	grown, err := m.growth(ctx, f)
	return grown["redis_commands"], grown["mysql_Questions"], err
}

type counters map[string]float64

// growth returns by how much the counters grow while f runs.
func (m Meter) growth(ctx context.Context, f func() error) (counters, error) {
	before, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	var used measure.Reading
	if m.CPU != nil {
		used = m.CPU.Read()
	}
	var from, to runtime.MemStats // innermost: the other readings allocate, too
	runtime.ReadMemStats(&from)
	if err := f(); err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&to)
	spent := make(map[string]float64)
	if m.CPU != nil {
		spent = m.CPU.Since(used)
	}
	after, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := m.read(ctx) // what reading itself costs
	if err != nil {
		return nil, err
	}
	grown := make(counters)
	for name, v := range after {
		reading := idle[name] - v
		grown[name] = max(0, v-before[name]-reading)
	}
	grown["allocations"], grown["alloc_bytes"] = float64(to.Mallocs-from.Mallocs), float64(to.TotalAlloc-from.TotalAlloc)
	for group, ms := range spent {
		grown["cpu_"+group] = 1000 * ms
	}
	return grown, nil
}

func (m Meter) read(ctx context.Context) (counters, error) {
	c := make(counters)
	if err := m.readMySQL(ctx, c); err != nil {
		return nil, fmt.Errorf("read the counters of mariadb: %w", err)
	}
	var mu sync.Mutex // masters are asked side by side
	err := m.Redis.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return readRedis(ctx, node, c, &mu) })
	if err != nil {
		return nil, fmt.Errorf("read the counters of redis: %w", err)
	}
	return c, nil
}

func (m Meter) readMySQL(ctx context.Context, c counters) error {
	rows, err := m.DB.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN "+
		"('Questions', 'Bytes_received', 'Bytes_sent', 'Innodb_data_fsyncs')")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		if c["mysql_"+name], err = strconv.ParseFloat(value, 64); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readRedis adds the counters of one master: of the commands that clients send
// for a lock. What scripts call is in their time.
func readRedis(ctx context.Context, node *redis.Client, c counters, mu *sync.Mutex) error {
	info, err := node.InfoMap(ctx, "commandstats", "stats").Result()
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	for name, text := range info["Commandstats"] {
		calls, micros := commandStat(text)
		switch strings.TrimPrefix(name, "cmdstat_") {
		case "eval", "evalsha", "get", "set":
			c["redis_commands"] += calls
			c["redis_us"] += micros
		}
	}
	in, _ := strconv.ParseFloat(info["Stats"]["total_net_input_bytes"], 64)
	out, _ := strconv.ParseFloat(info["Stats"]["total_net_output_bytes"], 64)
	c["redis_in"] += in
	c["redis_out"] += out
	return nil
}

// commandStat reads calls=1,usec=2,...
func commandStat(text string) (calls, micros float64) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "calls":
			calls, _ = strconv.ParseFloat(value, 64)
		case "usec":
			micros, _ = strconv.ParseFloat(value, 64)
		}
	}
	return calls, micros
}
