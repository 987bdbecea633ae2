package main

const (
	ownKey          = "own-key"
	oneKey          = "one-key"
	oneKeyProcesses = "one-key-processes"
	tryOneKey       = "try-one-key"
)

// A workload is what a contender is put to.
type workload struct {
	name      string
	callers   int // in all
	processes int
}

// job is what a process of this workload does.
func (w workload) job() string {
	if w.name == oneKeyProcesses {
		return oneKey
	}
	return w.name
}

// contended reports whether callers meet at one key and wait for it.
func (w workload) contended() bool { return w.job() == oneKey }

func workloads() []workload {
	return []workload{
		{ownKey, 1, 1},
		{ownKey, 64, 1},
		{ownKey, 1000, 1},
		{oneKey, 8, 1},
		{oneKey, 64, 1},
		{oneKeyProcesses, 64, 4},
		{tryOneKey, 1000, 1},
	}
}
