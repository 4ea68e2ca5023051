package collective

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// recordLength is the number of collectives that a group keeps a record of.
const recordLength = 64

// Entry is the record of one collective of one rank.
type Entry struct {
	Sequence int64 // the number of the collective in its group, from 1
	Call     string
	Bytes    int64     // of the array that was sent
	Started  time.Time // when this rank began it
	Took     time.Duration
	Done     bool  // false while it waits for other ranks, and if it failed
	Err      error // why it failed
}

// String returns a line without a line break.
func (e Entry) String() string {
	state := "waiting"
	switch {
	case e.Err != nil:
		state = "failed after " + e.Took.String()
	case e.Done:
		state = "took " + e.Took.String()
	}
	return fmt.Sprintf("%d %s, %d bytes, begun %s, %s", e.Sequence, e.Call, e.Bytes, e.Started.Format("15:04:05.000000"), state)
}

// record is a ring of the last collectives.
type record struct {
	mu      sync.Mutex
	entries []kept
	next    int
}

// kept records an entry, and formats it only on request.
type kept struct {
	Entry
	call   Call
	record *record
}

// begin adds the entry of a call. It keeps no memory of the caller.
func (r *record) begin(sequence int64, c *Call) *kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = make([]kept, recordLength)
	}
	k := &r.entries[r.next]
	r.next = (r.next + 1) % recordLength
	*k = kept{Entry: Entry{Sequence: sequence, Bytes: c.bytes(), Started: time.Now()}, call: *c, record: r}
	k.call.Recv = nil
	return k
}

// end notes the end of the call of a number, unless later ones have taken its place.
func (k *kept) end(number int64, err error) {
	k.record.mu.Lock()
	defer k.record.mu.Unlock()
	if k.Sequence != number {
		return
	}
	k.Took, k.Done, k.Err = time.Since(k.Started), err == nil, err
}

// Record returns the last 64 collectives of the group on this rank, the oldest first. If a group
// hangs, the others wait for the rank with the smallest last sequence number.
func (g *Group) Record() []Entry {
	r := &g.record
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Entry
	for i := range r.entries {
		if k := &r.entries[(r.next+i)%recordLength]; k.Sequence > 0 {
			e := k.Entry
			e.Call = k.call.String()
			out = append(out, e)
		}
	}
	return out
}

// FormatRecord returns the record of a group, a line for each collective.
func (g *Group) FormatRecord() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "rank %d of %d, the last collectives:\n", g.Rank(), g.Size())
	for _, e := range g.Record() {
		fmt.Fprintln(&sb, e)
	}
	return sb.String()
}
