package collective_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
)

// A collective of a device is in the record with its entry and bytes, and its failure ends the group
// on all ranks.
func TestACollectiveOfADeviceThatFailsEndsTheGroup(t *testing.T) {
	groups := collective.Local(2, collective.Options{})
	call := &collective.Call{DType: ir.F32, Bytes: 4000, Entry: "step", Step: 12}
	done, err := groups[0].Enqueue(call)
	if err != nil {
		t.Fatal(err)
	}
	done.End(nil)
	late, err := groups[0].Enqueue(call)
	if err != nil {
		t.Fatal(err)
	}
	record := groups[0].Record()
	if len(record) != 2 || !record[0].Done || record[1].Done || record[1].Sequence != 2 || record[1].Bytes != 4000 {
		t.Errorf("the record is %v", record)
	}
	select {
	case <-groups[1].Down():
		t.Error("the group is down before the failure")
	default:
	}
	err = late.Fail(&collective.Fault{Kind: collective.ErrDeadline, Peer: 1, Err: errors.New("late")})
	var e *collective.Error
	if !errors.As(err, &e) || e.Kind != collective.ErrDeadline || e.Peer != 1 || e.Sequence != 2 || e.Bytes != 4000 || !strings.Contains(e.Call, `all_reduce sum f32[1000] of entry "step", step 12`) {
		t.Errorf("the error is %+v", e)
	}
	select {
	case <-groups[1].Down():
	case <-time.After(time.Minute):
		t.Fatal("the other rank does not learn of it")
	}
	if err := groups[1].Err(); !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "late") {
		t.Errorf("the other rank has %v", err)
	}
	for _, g := range groups {
		_, err := g.Enqueue(call)
		if e := (*collective.Error)(nil); !errors.As(err, &e) || e.Bytes != 4000 || !strings.Contains(e.Call, `of entry "step", step 12`) {
			t.Errorf("a collective of rank %d after it: %v", g.Rank(), err)
		}
	}
}

// The end of a collective that the record has dropped changes nothing.
func TestTheRecordOfADeviceIsARing(t *testing.T) {
	g := collective.Local(1, collective.Options{})[0]
	first, err := g.Enqueue(&collective.Call{DType: ir.F32, Bytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := g.Enqueue(&collective.Call{DType: ir.F32, Bytes: 4}); err != nil {
			t.Fatal(err)
		}
	}
	first.End(nil)
	record := g.Record()
	if len(record) != 64 || record[0].Sequence != 2 || slices.ContainsFunc(record, func(e collective.Entry) bool { return e.Done }) {
		t.Errorf("the record is %v", record)
	}
}

func TestClosingAGroupFreesWhatWasMadeForIt(t *testing.T) {
	g := collective.Local(1, collective.Options{})[0]
	failed, times := errors.New("not freed"), 0
	g.AtClose(func() error { times++; return failed })
	if err := g.Close(); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	if err := g.Close(); err != nil || times != 1 {
		t.Errorf("a second close: %v, freed %d times", err, times)
	}
	if err := g.Err(); !errors.Is(err, collective.ErrClosed) {
		t.Errorf("a closed group has %v", err)
	}
}

// slowEngine takes until a channel is closed to notify the other ranks.
type slowEngine struct {
	collective.Engine
	begun, release chan struct{}
	aborted        atomic.Bool
}

func (e *slowEngine) Rank() int             { return 0 }
func (e *slowEngine) Size() int             { return 2 }
func (e *slowEngine) Close() error          { return nil }
func (e *slowEngine) Abort(error)           { close(e.begun); <-e.release; e.aborted.Store(true) }
func (e *slowEngine) Reason() error         { return nil }
func (e *slowEngine) Down() <-chan struct{} { return e.begun }

// A process that fails may end after Close: the reason must have been sent by then.
func TestCloseWaitsUntilTheOthersHaveTheReason(t *testing.T) {
	e := &slowEngine{begun: make(chan struct{}), release: make(chan struct{})}
	g := collective.NewGroup(e, collective.Options{})
	go g.Abort(errors.New("no memory"))
	<-e.begun
	time.AfterFunc(20*time.Millisecond, func() { close(e.release) })
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if !e.aborted.Load() {
		t.Error("the group is closed before the others know why")
	}
}
