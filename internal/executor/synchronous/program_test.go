package synchronous_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// adder adds its input to a state and gives the sum, when it is let: a run waits for a
// word of gate, if there is one.
type adder struct {
	total    float32
	gate     chan struct{}
	runs     int
	released bool
	fail     error
}

func (*adder) Backend() string { return "adder" }

func (a *adder) Run(_ int, values []native.Tensor) error {
	if a.gate != nil {
		<-a.gate
	}
	a.runs++
	if a.fail != nil {
		return a.fail
	}
	x, err := values[0].Float32s()
	if err != nil {
		return err
	}
	a.total += x[0]
	if out, _ := values[1].Float32s(); len(out) > 0 {
		out[0] = a.total
	}
	return nil
}

func (a *adder) Write(_ int, t native.Tensor) {
	x, _ := t.Float32s()
	a.total = x[0]
}

func (a *adder) Read(int) native.Tensor { return native.Float32s([]float32{a.total}) }

func (a *adder) Release() error {
	a.released = true
	return nil
}

func program(a *adder) *synchronous.Program {
	slot := func(name string, role native.Role) native.Slot {
		return native.Slot{Name: name, Role: role, DType: ir.F32, Dims: []int{1}}
	}
	return synchronous.NewProgram(synchronous.Signature{
		Entries:    []synchronous.Entry{{Name: "add", Slots: []native.Slot{slot("x", native.Input), slot("sum", native.Output)}}},
		Persistent: []native.Slot{slot("total", native.State)},
	}, a)
}

func one(x float32) map[string]native.Tensor {
	return map[string]native.Tensor{"x": native.Float32s([]float32{x})}
}

// TestRunsAreSequential starts runs that block: each has the sum of those
// before it, and a read of a state waits for all of them.
func TestRunsAreSequential(t *testing.T) {
	a := &adder{gate: make(chan struct{})}
	p, ctx := program(a), context.Background()
	var runs []native.Run
	for i := range 4 {
		r, err := p.Run(ctx, "add", one(float32(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	close(a.gate)
	if got, err := p.Get(ctx, "total"); err != nil || must(t, got)[0] != 10 {
		t.Errorf("total is %v, %v: want 10", got, err)
	}
	for i, want := range []float32{1, 3, 6, 10} {
		out, err := runs[i].Wait(ctx)
		if err != nil || must(t, out["sum"])[0] != want {
			t.Errorf("run %d gave %v, %v: want %v", i, out, err, want)
		}
	}
}

// TestCancelledRunDoesNotStart cancels a run that waits for another one.
func TestCancelledRunDoesNotStart(t *testing.T) {
	a := &adder{gate: make(chan struct{})}
	p, ctx := program(a), context.Background()
	first, err := p.Run(ctx, "add", one(1))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	second, err := p.Run(short, "add", one(2))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Get(short, "total"); !errors.Is(err, context.Canceled) {
		t.Errorf("reading without time to wait: %v", err)
	}
	close(a.gate)
	if _, err := first.Wait(ctx); err != nil {
		t.Error(err)
	}
	if _, err := second.Wait(ctx); !errors.Is(err, context.Canceled) || a.runs != 1 {
		t.Errorf("%d runs, the second of which says %v", a.runs, err)
	}
}

// TestBoundRunReportsItsErrorOnce has the machine fail with an error of no kind.
func TestBoundRunReportsItsErrorOnce(t *testing.T) {
	a := &adder{fail: errors.New("out of order")}
	ctx := context.Background()
	b, err := program(a).Bind(ctx, "add", one(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	var typed *native.Error
	if err := b.Wait(ctx); !errors.As(err, &typed) || typed.Backend != "adder" || typed.Call != "add" || !errors.Is(err, a.fail) {
		t.Errorf("the error is %v", err)
	}
	if err := b.Wait(ctx); err != nil {
		t.Errorf("reported again: %v", err)
	}
}

// TestAClosedProgramRefusesCalls, and closes once.
func TestAClosedProgramRefusesCalls(t *testing.T) {
	a := &adder{}
	p, ctx := program(a), context.Background()
	b, err := p.Bind(ctx, "add", one(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Close(ctx), p.Close(ctx)); err != nil || !a.released {
		t.Fatalf("closing: %v, given back: %t", err, a.released)
	}
	_, run := p.Run(ctx, "add", one(1))
	_, get := p.Get(ctx, "total")
	for _, err := range []error{run, get, p.Set(ctx, "total", native.Float32s([]float32{1})), b.Start(ctx)} {
		if !errors.Is(err, native.ErrClosed) {
			t.Errorf("after closing: %v", err)
		}
	}
}

func must(t *testing.T, x native.Tensor) []float32 {
	t.Helper()
	out, err := x.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEntriesThatOnlyReadRunAtTheSameTime has each of two runs wait for the other.
func TestEntriesThatOnlyReadRunAtTheSameTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m := &meeting{both: make(chan struct{}, 2), met: make(chan struct{})}
	p := synchronous.NewProgram(synchronous.Signature{Entries: []synchronous.Entry{
		{Name: "first", OnlyReads: true}, {Name: "second", OnlyReads: true}, {Name: "write"},
	}}, m)
	first, err := p.Run(ctx, "first", nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Bind(ctx, "second", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.Start(ctx), second.Wait(ctx)); err != nil {
		t.Error(err)
	}
	if _, err := first.Wait(ctx); err != nil {
		t.Error(err)
	}
	// The same entry and one that writes run alone, or the machine fails.
	var runs []native.Run
	for i := range 60 {
		r, err := p.Run(ctx, []string{"first", "write", "first"}[i%3], nil)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	for _, r := range runs {
		if _, err := r.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
}

// meeting is a machine whose first two runs wait for each other, and whose later ones are
// to be alone.
type meeting struct {
	adder
	both chan struct{}
	met  chan struct{}
	busy atomic.Int32
}

func (m *meeting) Run(int, []native.Tensor) error {
	select {
	case <-m.met:
	case m.both <- struct{}{}:
		if len(m.both) == 2 {
			close(m.met)
		}
		select {
		case <-m.met:
			return nil
		case <-time.After(5 * time.Second):
			return errors.New("nobody came")
		}
	}
	defer m.busy.Add(-1)
	if m.busy.Add(1) != 1 {
		return errors.New("not alone")
	}
	time.Sleep(100 * time.Microsecond)
	return nil
}

// TestCloseGivesUpWithItsContext closes with a cancelled context during a run: the program stays open.
func TestCloseGivesUpWithItsContext(t *testing.T) {
	a := &adder{gate: make(chan struct{})}
	p, ctx := program(a), context.Background()
	r, err := p.Run(ctx, "add", one(1))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := p.Close(short); !errors.Is(err, context.DeadlineExceeded) || a.released {
		t.Errorf("closing with a run under way: %v, given back: %t", err, a.released)
	}
	if err := p.Set(short, "total", native.Float32s([]float32{1})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("setting with a run under way: %v", err)
	}
	close(a.gate)
	if _, err := r.Wait(ctx); err != nil {
		t.Error(err)
	}
	if err := p.Close(short); err != nil || !a.released {
		t.Errorf("closing a program that nobody uses: %v, given back: %t", err, a.released)
	}
}
