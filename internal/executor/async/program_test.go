package async_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/native"
)

// errGPU is the error of a lost device in these tests.
var errGPU = errors.New("the GPU is gone")

// machine is a device whose entry adds its input to the state "sum" and returns the sum
// and whether it is positive. Runs end when the test ends them.
type machine struct {
	held       bool // runs under way do not end
	hostDriven bool
	code       uint32 // value of the status word after the next run
	fail       error  // of the next run
	lost       error
	sum        float32
	stages     int // that were made and not given back
	begun      int
}

type stage struct {
	m               *machine
	in, out, is, st []byte
	err             error
}

func (m *machine) Backend() string     { return "test" }
func (m *machine) Lost() error         { return m.lost }
func (m *machine) HostDriven(int) bool { return m.hostDriven }
func (m *machine) InFlight(int) int    { return 3 }
func (m *machine) Ordered() bool       { return false }
func (m *machine) Release() error      { return nil }
func (m *machine) Read(_ *plan.Slot, d []byte) error {
	binary.LittleEndian.PutUint32(d, math.Float32bits(m.sum))
	return nil
}

func (m *machine) Write(_ *plan.Slot, d []byte) error {
	m.sum = math.Float32frombits(binary.LittleEndian.Uint32(d))
	return nil
}

func (m *machine) Kind(err error) error {
	if errors.Is(err, errGPU) {
		m.lost = err
		return native.ErrLost
	}
	return nil
}

func (m *machine) NewStage(int) (async.Stage, error) {
	m.stages++
	return &stage{m: m, in: make([]byte, 4), out: make([]byte, 4), is: make([]byte, 4), st: make([]byte, 4)}, nil
}

func (s *stage) Input(int) []byte    { return s.in }
func (s *stage) Output(i int) []byte { return [][]byte{s.out, s.is}[i] }
func (s *stage) Status() []byte      { return s.st }
func (s *stage) Done() (bool, error) { return !s.m.held, s.err }
func (s *stage) Release() error      { s.m.stages--; return nil }

func (s *stage) Begin([]int) error {
	s.m.begun++
	binary.LittleEndian.PutUint32(s.st, s.m.code)
	if s.m.code == 0 {
		s.m.sum += math.Float32frombits(binary.LittleEndian.Uint32(s.in))
	}
	binary.LittleEndian.PutUint32(s.out, math.Float32bits(s.m.sum))
	binary.LittleEndian.PutUint32(s.is, 0)
	if s.m.sum > 0 {
		binary.LittleEndian.PutUint32(s.is, 1)
	}
	s.err, s.m.fail, s.m.code = s.m.fail, nil, 0
	return nil
}

func open(m *machine) *async.Program {
	number := func(name string, role plan.Role) plan.Slot {
		return plan.Slot{Name: name, Role: role, DType: dtype.F32, Dims: []int{}, Bytes: 4}
	}
	is := number("positive", plan.Output)
	is.DType = dtype.Bool
	return async.NewProgram(&plan.Plan{
		Slots:  []plan.Slot{number("x", plan.Input), number("y", plan.Output), is, number("sum", plan.State)},
		Status: &plan.Status{Buffer: 5, Codes: []plan.StatusCode{{Code: 7, Node: "check", Message: "wrong"}}},
		Entries: []plan.Entry{{
			Name: "step", Inputs: []int{0}, Outputs: []int{1, 2},
			Steps: []plan.Step{&plan.While{Steps: []plan.Step{&plan.Dispatch{Bindings: []plan.Binding{{Buffer: 5}}}}}},
		}},
	}, m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func x(v float32) map[string]native.Tensor {
	return map[string]native.Tensor{"x": {DType: ir.F32, Dims: []int{}, Data: native.Float32s([]float32{v}).Data}}
}

func TestAFourthRunWaitsForTheFirst(t *testing.T) {
	m := &machine{held: true}
	p := open(m)
	for range 3 {
		_, err := p.Run(context.Background(), "step", x(1))
		must(t, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx, "step", x(1)); !errors.Is(err, context.DeadlineExceeded) || m.begun != 3 {
		t.Errorf("with three runs under way the fourth: %v, %d were begun", err, m.begun)
	}
	m.held = false
	last, err := p.Run(context.Background(), "step", x(-9))
	must(t, err)
	out, err := last.Wait(context.Background())
	must(t, err)
	y, err := out["y"].Float32s()
	if err != nil || y[0] != -6 || out["positive"].Data[0] != 0 {
		t.Errorf("outputs %v", out)
	}
	must(t, p.Close(ctx))
	if m.stages != 0 {
		t.Errorf("%d stages were not given back", m.stages)
	}
	if _, err := p.Run(context.Background(), "step", x(1)); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a run of a closed program: %v", err)
	}
}

func TestRunsWaitForHostDrivenRun(t *testing.T) {
	m := &machine{held: true, hostDriven: true}
	p := open(m)
	_, err := p.Run(context.Background(), "step", x(1))
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx, "step", x(1)); !errors.Is(err, context.DeadlineExceeded) || m.begun != 1 {
		t.Errorf("the second run: %v, %d were begun", err, m.begun)
	}
	m.held = false
	_, err = p.Run(context.Background(), "step", x(1))
	must(t, err)
	must(t, p.Close(ctx))
}

func TestRunErrorIsReportedOnce(t *testing.T) {
	m := &machine{}
	p := open(m)
	b, err := p.Bind(context.Background(), "step", x(2), nil)
	must(t, err)
	must(t, b.Start(context.Background()))
	m.code = 7
	must(t, b.Start(context.Background()))
	must(t, b.Start(context.Background()))
	var typed *native.Error
	if _, err := p.Get(context.Background(), "sum"); !errors.Is(err, ir.ErrIndex) || !errors.As(err, &typed) || typed.Node != "check" || typed.Call != "step" {
		t.Errorf("Get after a run that failed: %v", err)
	}
	sum, err := p.Get(context.Background(), "sum")
	must(t, err)
	if v, err := sum.Float32s(); err != nil || v[0] != 4 {
		t.Errorf("the sum is %v", v)
	}
}

func TestDeviceLostErrorReportsLostRuns(t *testing.T) {
	m := &machine{}
	p := open(m)
	first, err := p.Run(context.Background(), "step", x(1))
	must(t, err)
	m.fail = errGPU
	second, err := p.Run(context.Background(), "step", x(1))
	must(t, err)
	_, err = first.Wait(context.Background())
	must(t, err)
	_, err = second.Wait(context.Background())
	_, later := p.Get(context.Background(), "sum")
	for name, err := range map[string]error{"the run": err, "a call after it": later, "set": p.Set(context.Background(), "sum", x(1)["x"])} {
		var typed *native.Error
		if !errors.Is(err, native.ErrLost) || !errors.As(err, &typed) || typed.Steps != 2 || typed.Backend != "test" {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, p.Close(context.Background()))
	if m.stages != 0 {
		t.Errorf("%d stages were not given back", m.stages)
	}
}

func TestSeveralGoroutinesTakeTurns(t *testing.T) {
	p := open(&machine{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				r, err := p.Run(context.Background(), "step", x(1))
				if err == nil {
					_, err = r.Wait(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sum, err := p.Get(context.Background(), "sum")
	must(t, err)
	if v, _ := sum.Float32s(); v[0] != 400 {
		t.Errorf("the sum of 400 runs is %v", v)
	}
}
