package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// upkeep is what many held leases cost.
type upkeep struct {
	Leases          int     `json:"leases"`
	TTLSeconds      float64 `json:"ttl_s"`
	HeldSeconds     float64 `json:"held_s"`
	Goroutines      int     `json:"goroutines"`      // in the whole process
	BytesPerLease   float64 `json:"bytes_per_lease"` // heap in use
	CPUShare        float64 `json:"cpu_share"`       // of one core
	RenewalsPerSec  float64 `json:"renewals_per_s"`
	FailedRenewals  int64   `json:"failed_renewals"` // asked without an answer, or refused
	WorstLatenessMS float64 `json:"worst_lateness_ms"`
	Lost            int     `json:"lost"`
}

// benchRenew is the command renew.
func benchRenew(ctx context.Context, addrs, args []string) error {
	flags := flag.NewFlagSet("renew", flag.ContinueOnError)
	n := flags.Int("leases", 100_000, "leases to hold")
	periods := flags.Int("periods", 3, "renewal periods (a third of the ttl) to hold them for")
	short := flags.Bool("short", false, "a tenth of the leases, for one period")
	file := flags.String("json", "", "also write the result to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		*n, *periods = *n/10, 1
	}
	if *n < 1 || *periods < 1 {
		return errors.New("leases and periods must be positive")
	}

	fmt.Println(describe(ctx, addrs))
	fmt.Printf("%d leases on one Locker over redislock.Open, ttl %v, held for %d renewal periods\n", *n, ttl, *periods)
	u, err := holdMany(ctx, addrs, *n, time.Duration(*periods)*ttl/3)
	if err != nil {
		return err
	}
	fmt.Printf(`
goroutines       %8d  in the whole process
bytes per lease  %8.0f  of heap in use, without the key
cpu              %8.1f  %% of one core, this process
renewals         %8.0f  /s, %d failed
worst lateness   %8.1f  ms after it was due
lost             %8d
`, u.Goroutines, u.BytesPerLease, u.CPUShare*100, u.RenewalsPerSec, u.FailedRenewals, u.WorstLatenessMS, u.Lost)
	fmt.Printf("\nload now %s\n", measure.LoadAverages())
	return measure.WriteJSON(*file, u)
}

// acquirers is how many goroutines acquire or release the leases.
const acquirers = 256

func holdMany(ctx context.Context, addrs []string, n int, span time.Duration) (u upkeep, err error) {
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: addrs}, redislock.Config{})
	if err != nil {
		return u, err
	}
	defer engine.Close(context.Background())
	// What is not the leases' own comes first: connections, keys, the list.
	stamp := strconv.FormatInt(time.Now().UnixNano(), 36)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "bench-renew:" + stamp + ":" + strconv.Itoa(i)
	}
	times := newRenewTimes(engine, keys)
	locker, err := lock.New(times, lock.Config{TTL: ttl})
	if err != nil {
		return u, err
	}
	defer locker.Close(context.Background())
	leases := make([]*lock.Lease, n)
	acquire := func(i int) (err error) {
		leases[i], err = locker.Acquire(ctx, keys[i])
		return err
	}
	release := func(i int) error {
		if lease := leases[i]; lease != nil && lease.Err() == nil {
			return lease.Release(context.Background())
		}
		return nil
	}
	few := min(n, 10*acquirers)
	if err := errors.Join(inParallel(few, acquire), inParallel(few, release)); err != nil {
		return u, err
	}
	clear(leases)
	heap := heapInUse()

	defer func() { err = errors.Join(err, inParallel(n, release)) }()
	if err := inParallel(n, acquire); err != nil {
		return u, err
	}
	u = upkeep{Leases: n, TTLSeconds: ttl.Seconds(), BytesPerLease: measure.Thousandths((heapInUse() - heap) / float64(n))}
	err = u.hold(ctx, times, span)
	u.Goroutines = runtime.NumGoroutine()
	for _, lease := range leases {
		if lease.Err() != nil {
			u.Lost++
		}
	}
	return u, err
}

// hold watches the renewals of a span of time.
func (u *upkeep) hold(ctx context.Context, times *renewTimes, span time.Duration) error {
	cpu := measure.NewMeter()
	cpu.Add("self", os.Getpid())
	began, used, renewed := time.Now(), cpu.Read(), times.renewed.Load()
	if err := wait.Sleep(ctx, span, nil); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	u.HeldSeconds = measure.Thousandths(took)
	u.CPUShare = measure.Thousandths(cpu.Since(used)["self"] / 1000 / took)
	u.RenewalsPerSec = measure.Thousandths(float64(times.renewed.Load()-renewed) / took)
	u.FailedRenewals = times.failed.Load()
	u.WorstLatenessMS = measure.Millis(times.worst())
	return nil
}

// inParallel calls f with 0 to n-1 and returns the first error.
func inParallel(n int, f func(int) error) error {
	var group errgroup.Group
	group.SetLimit(acquirers)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

func heapInUse() float64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse)
}
