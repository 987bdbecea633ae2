// Package cost measures what one operation costs the servers and this process,
// by their own counters: one caller, one operation after the other.
package cost

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"strconv"
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
	Name    string
	counter string // that it is the growth of; "" = the clock
	kind    kind
	of      func(*Cost) *float64
}

// In returns the figure of c.
func (f Figure) In(c Cost) float64 { return *f.of(&c) }

// Figures returns all figures.
func Figures() []Figure {
	return []Figure{
		{"µs", "", timed, func(c *Cost) *float64 { return &c.Micros }},
		{"client cpu µs", "cpu_client", ticked, func(c *Cost) *float64 { return &c.ClientCPU }},
		{"allocations", "allocations", counted, func(c *Cost) *float64 { return &c.Allocations }},
		{"alloc B", "alloc_bytes", counted, func(c *Cost) *float64 { return &c.AllocBytes }},
		{"redis commands", "redis_commands", counted, func(c *Cost) *float64 { return &c.RedisCommands }},
		{"redis in B", "redis_in", counted, func(c *Cost) *float64 { return &c.RedisIn }},
		{"redis out B", "redis_out", counted, func(c *Cost) *float64 { return &c.RedisOut }},
		{"redis µs", "redis_us", timed, func(c *Cost) *float64 { return &c.RedisMicros }},
		{"statements", "Questions", counted, func(c *Cost) *float64 { return &c.Statements }},
		{"sql in B", "Bytes_received", counted, func(c *Cost) *float64 { return &c.MySQLIn }},
		{"sql out B", "Bytes_sent", counted, func(c *Cost) *float64 { return &c.MySQLOut }},
		{"sql cpu µs", "cpu_mariadb", ticked, func(c *Cost) *float64 { return &c.MySQLCPU }},
		{"fsyncs", "Innodb_data_fsyncs", counted, func(c *Cost) *float64 { return &c.Fsyncs }},
	}
}

// A Meter reads the counters.
type Meter struct {
	DB    *sql.DB
	Redis *redis.ClusterClient
	CPU   *measure.Meter
}

// Measure runs op n times and returns the cost of one.
func (m Meter) Measure(ctx context.Context, n int, op func(i int) error) (Cost, error) {
	took := make([]float64, n)
	grown, err := m.Growth(ctx, func() error {
		for i := range took {
			start := time.Now()
			if err := op(i); err != nil {
				return err
			}
			took[i] = float64(time.Since(start)) / float64(time.Microsecond)
		}
		return nil
	})
	c := Cost{Operations: n}
	for _, f := range Figures() {
		*f.of(&c) = grown[f.counter] / float64(n)
	}
	c.Micros = measure.Median(took)
	return c, err
}

// Counters are by name: redis_commands, Questions (statements), cpu_GROUP in µs, and
// others.
type Counters map[string]float64

// Growth returns by how much the counters of the servers, for all their clients, and
// of this process grow while f runs.
func (m Meter) Growth(ctx context.Context, f func() error) (Counters, error) {
	before, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	used := m.CPU.Read()
	var from, to runtime.MemStats // innermost: the other readings allocate, too
	runtime.ReadMemStats(&from)
	if err := f(); err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&to)
	spent := m.CPU.Since(used)
	after, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := m.read(ctx) // what reading itself costs
	if err != nil {
		return nil, err
	}
	grown := Counters{"allocations": float64(to.Mallocs - from.Mallocs), "alloc_bytes": float64(to.TotalAlloc - from.TotalAlloc)}
	for name, v := range after {
		grown[name] = max(0, v-before[name]-(idle[name]-v))
	}
	for group, ms := range spent {
		grown["cpu_"+group] = 1000 * ms
	}
	return grown, nil
}

func (m Meter) read(ctx context.Context) (Counters, error) {
	c := make(Counters)
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

func (m Meter) readMySQL(ctx context.Context, c Counters) error {
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
		if c[name], err = strconv.ParseFloat(value, 64); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readRedis adds the counters of one master: of the commands that clients send
// for a lock. What scripts call is in their time.
func readRedis(ctx context.Context, node *redis.Client, c Counters, mu *sync.Mutex) error {
	info, err := node.InfoMap(ctx, "commandstats", "stats").Result()
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	add := func(section, name, format string, into ...string) {
		values := make([]float64, 2)
		_, _ = fmt.Sscanf(info[section][name], format, &values[0], &values[1])
		for i, counter := range into {
			c[counter] += values[i]
		}
	}
	for _, command := range []string{"eval", "evalsha", "get", "set"} {
		add("Commandstats", "cmdstat_"+command, "calls=%f,usec=%f", "redis_commands", "redis_us")
	}
	add("Stats", "total_net_input_bytes", "%f", "redis_in")
	add("Stats", "total_net_output_bytes", "%f", "redis_out")
	return nil
}
