package etcdlock

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestHistoryFindsLoss: answers may come in another order than their requests were sent, and each
// loss is found once.
func TestHistoryFindsLoss(t *testing.T) {
	losses := 0
	h := &history{lost: func() { losses++ }}
	note := func(before position, cluster uint64, revision int64, want int) {
		t.Helper()
		h.note(before, &pb.ResponseHeader{ClusterId: cluster, Revision: revision})
		if losses != want {
			t.Errorf("%d losses after revision %d, want %d", losses, revision, want)
		}
	}
	first := h.now()
	note(first, 1, 100, 0)
	early := h.now()
	note(early, 1, 103, 0)
	note(early, 1, 102, 0) // sent before the answer of 103 came
	late := h.now()
	note(late, 1, 90, 1)
	note(late, 1, 91, 1) // the same loss
	note(h.now(), 1, 92, 1)
	note(h.now(), 2, 1<<40, 2)
	note(h.now(), 2, 1<<40, 2)
}
