package etcdlock

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A history notes how far etcd has come. If an answer is older than one that had come when its
// request was sent, or is of another cluster, etcd has lost writes, as after a restore of a backup.
type history struct {
	lost func() // is called once for each loss

	mu   sync.Mutex
	seen position
}

// A position is a revision in the history of one cluster.
type position struct {
	losses   int // that were seen before
	cluster  uint64
	revision int64
	term     uint64 // of raft: each leader has one of its own
}

func (h *history) now() position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// note notes an answer to a request that was sent at before.
func (h *history) note(before position, answer *pb.ResponseHeader) {
	if h.add(before, answer) {
		h.lost()
	}
}

// add reports whether the answer shows a loss.
func (h *history) add(before position, answer *pb.ResponseHeader) (lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before.losses != h.seen.losses {
		return false
	}
	lost = before.cluster != 0 && (answer.GetClusterId() != before.cluster || answer.GetRevision() < before.revision)
	switch {
	case lost:
		h.seen = position{before.losses + 1, answer.GetClusterId(), answer.GetRevision(), answer.GetRaftTerm()}
	case answer.GetRevision() > h.seen.revision:
		h.seen.cluster, h.seen.revision = answer.GetClusterId(), answer.GetRevision()
	}
	h.seen.term = max(h.seen.term, answer.GetRaftTerm())
	return lost
}

// noteTerm notes the term of an answer to a request about a lease that was sent at before. Its
// revision proves no loss: a member answers with its own.
func (h *history) noteTerm(before position, answer *pb.ResponseHeader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before.losses == h.seen.losses && (h.seen.cluster == 0 || answer.GetClusterId() == h.seen.cluster) {
		h.seen.term = max(h.seen.term, answer.GetRaftTerm())
	}
}
