package chaos_test

import "slices"

// cycle returns nodes of which each came before the next one and the last one before the first, or
// nil: by Tarjan's search for what reaches itself.
func cycle(nodes []*node) []*node {
	s := &search{}
	for _, n := range nodes {
		if n.index == 0 {
			if found := s.visit(n); found != nil {
				return shortest(found)
			}
		}
	}
	return nil
}

type search struct {
	count int
	stack []*node
}

// visit goes on from n with a stack of its own: a run has a chain of tens of thousands.
func (s *search) visit(n *node) []*node {
	type step struct {
		n *node
		i int
	}
	enter := func(n *node) step {
		s.count++
		n.index, n.low, n.open = s.count, s.count, true
		s.stack = append(s.stack, n)
		return step{n: n}
	}
	for way := []step{enter(n)}; len(way) > 0; {
		at := &way[len(way)-1]
		if at.i < len(at.n.next) {
			to := at.n.next[at.i].to
			at.i++
			switch {
			case to.index == 0:
				way = append(way, enter(to))
			case to.open:
				at.n.low = min(at.n.low, to.index)
			}
			continue
		}
		done := at.n
		way = way[:len(way)-1]
		if len(way) > 0 {
			up := way[len(way)-1].n
			up.low = min(up.low, done.low)
		}
		if done.low == done.index {
			if found := s.close(done); len(found) > 1 {
				return found
			}
		}
	}
	return nil
}

// close takes what reaches itself by n off the stack.
func (s *search) close(n *node) []*node {
	i := slices.Index(s.stack, n)
	found := slices.Clone(s.stack[i:])
	s.stack = s.stack[:i]
	for _, m := range found {
		m.open = false
	}
	return found
}

// shortest returns the shortest cycle through a call of nodes that reach each other.
func shortest(nodes []*node) (least []*node) {
	inside := make(map[*node]bool)
	for _, n := range nodes {
		inside[n] = true
	}
	for _, from := range nodes {
		if from.call == nil {
			continue
		}
		if way := wayBack(from, inside); least == nil || len(way) < len(least) {
			least = way
		}
	}
	return least
}

// wayBack returns the shortest way from a node to itself.
func wayBack(from *node, inside map[*node]bool) []*node {
	by := make(map[*node]*node)
	for queue := []*node{from}; len(queue) > 0; queue = queue[1:] {
		for _, b := range queue[0].next {
			if b.to == from {
				var way []*node
				for n := queue[0]; n != nil; n = by[n] {
					way = append(way, n)
				}
				slices.Reverse(way)
				return way
			}
			if inside[b.to] && by[b.to] == nil {
				by[b.to] = queue[0]
				queue = append(queue, b.to)
			}
		}
	}
	return nil
}
