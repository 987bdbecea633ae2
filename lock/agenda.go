package lock

// An agenda is a heap of the watchdog's tasks, ordered by their times.
type agenda[E interface {
	next() int64
	setIndex(i int)
}] []E

func (a agenda[E]) Len() int           { return len(a) }
func (a agenda[E]) Less(i, j int) bool { return a[i].next() < a[j].next() }
func (a agenda[E]) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].setIndex(i)
	a[j].setIndex(j)
}

func (a *agenda[E]) Push(x any) {
	e := x.(E)
	e.setIndex(len(*a))
	*a = append(*a, e)
}

func (a *agenda[E]) Pop() any {
	old := *a
	last := len(old) - 1
	e := old[last]
	clear(old[last:])
	*a = old[:last]
	return e
}
