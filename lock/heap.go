package lock

import "time"

// leaseHeap orders leases by when the watchdog must look at them next.
type leaseHeap []*Lease

// next is when the watchdog must look at the lease: to renew it, or to stop
// believing in it.
func (l *Lease) next() time.Time {
	deadline := l.Deadline()
	if l.renewing || l.state != held || deadline.Before(l.due) {
		return deadline
	}
	return l.due
}

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].next().Before(h[j].next()) }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *leaseHeap) Push(x any) {
	l := x.(*Lease)
	l.index = len(*h)
	*h = append(*h, l)
}
func (h *leaseHeap) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = nil
	*h = old[:last]
	return l
}
