package rlx_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// picky is the CPU under another name, slower by its own account, that refuses what node says.
type picky struct {
	native.Backend
	name string
	node func(n *ir.Node) string
	// module is the reason why the compiler refuses a module with an op that node accepts.
	module ir.Op
	// whole is set for a device whose compiler refuses every module, and no node.
	whole bool
}

func (p *picky) Name() string { return p.name }

func (p *picky) Info() native.Info {
	return native.Info{Description: "the CPU as " + p.name, Software: true, Speed: 0.5}
}

func (p *picky) Support(n *ir.Node) native.Support {
	if reason := p.node(n); reason != "" {
		return native.Support{Level: native.Unsupported, Reason: reason}
	}
	return p.Backend.Support(n)
}

func (p *picky) Check(m *ir.Module) error {
	if p.whole && m.Name == "m" { // a node alone is in a module of another name
		return ir.Errorf(ir.ErrUnsupported, "too large as a whole")
	}
	for _, e := range m.Entries {
		for _, n := range e.Graph.Nodes() {
			if p.module != "" && n.Op() == p.module {
				return n.Fail(ir.Errorf(ir.ErrUnsupported, "no kernel for %s", n.Op()))
			}
		}
	}
	return nil
}

func refuse(op ir.Op) func(n *ir.Node) string {
	return func(n *ir.Node) string {
		if n.Op() == op {
			return "it has no " + string(op)
		}
		return ""
	}
}

func register(t *testing.T, p *picky) {
	t.Helper()
	p.Backend = cpu.Backend()
	if err := native.Register(p); err != nil && !errors.Is(err, ir.ErrName) {
		t.Fatal(err)
	}
}

func moduleOf(t *testing.T, f func(b *ir.Builder)) *ir.Module {
	t.Helper()
	g, err := ir.Build("g", f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// softmaxModule is a composite, whose decomposition has an exp and a max.
func softmaxModule(t *testing.T) *ir.Module {
	return moduleOf(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("rows"), ir.N(4))
		b.Output("y", ops.Add(b, ops.Softmax(b, x, 1), x))
	})
}

func TestReportNamesTheNodes(t *testing.T) {
	register(t, &picky{name: "noexp", node: refuse("exp")})
	register(t, &picky{name: "noadd", node: refuse("add")})
	register(t, &picky{name: "nokernel", node: refuse(""), module: "add"})
	whole, err := rlx.ReportOn(softmaxModule(t), "cpu")
	if err != nil || whole.Err() != nil || len(whole.Rows) < 2 || !strings.HasPrefix(whole.String(), "cpu computes all ") {
		t.Errorf("%v, %v", whole, err)
	}
	for device, want := range map[string]string{"noexp": "it has no exp", "noadd": "it has no add", "nokernel": "no kernel for add"} {
		r, err := rlx.ReportOn(softmaxModule(t), device)
		if err != nil {
			t.Fatal(err)
		}
		rows := r.Unsupported()
		if len(rows) != 1 || !strings.Contains(rows[0].Reason, want) || rows[0].Entry != "run" || !errors.Is(r.Err(), ir.ErrUnsupported) || !strings.Contains(r.Err().Error(), want) {
			t.Errorf("%s: %v", device, r)
		}
		var read struct {
			Device   string
			Computes bool
			Rows     []struct{ Entry, Node, Level, Reason string }
		}
		text, err := json.Marshal(r)
		if err != nil || json.Unmarshal(text, &read) != nil || read.Device != device || read.Computes || len(read.Rows) != len(r.Rows) {
			t.Errorf("%s: %s, %v", device, text, err)
		}
	}
	register(t, &picky{name: "nowhole", node: refuse(""), whole: true})
	r, err := rlx.ReportOn(softmaxModule(t), "nowhole")
	if err != nil || r.Refused == nil || len(r.Unsupported()) > 0 || !errors.Is(r.Err(), ir.ErrUnsupported) || !strings.Contains(r.String(), "nowhole refuses the module") {
		t.Errorf("a device that refuses the whole: %v, %v", r, err)
	}
	all, err := rlx.DevicesFor(softmaxModule(t))
	if err != nil {
		t.Fatal(err)
	}
	able := map[string]bool{}
	for _, r := range all {
		able[r.Device.Name] = r.Err() == nil
	}
	if !able["cpu"] || able["noexp"] || able["noadd"] || able["nokernel"] || able["nowhole"] || len(able) < 5 {
		t.Errorf("the devices are %v", able)
	}
}

// TestReportsCountMemory: the CPU computes each node of a module, and refuses the whole if it takes more memory than there is.
func TestReportsCountMemory(t *testing.T) {
	t.Setenv(native.MemoryVariable, "5MiB")
	sum := moduleOf(t, func(b *ir.Builder) {
		y := b.Input("x", ir.F32, ir.N(1<<19))
		for i, name := range []string{"a", "b", "c"} {
			y = ops.Add(b, y, ops.Const(b, ir.F32, float64(i)))
			b.Output(name, y)
		}
	})
	r, err := rlx.ReportOn(sum, "cpu")
	if err != nil || !errors.Is(r.Err(), native.ErrMemory) || len(r.Unsupported()) > 0 {
		t.Errorf("8 MiB of 5: %v, %v", r, err)
	}
	large := moduleOf(t, func(b *ir.Builder) { b.Output("y", ops.Exp(b, b.Input("x", ir.F32, ir.N(1<<30)))) })
	if r, err := rlx.ReportOn(large, "cpu"); err != nil || !errors.Is(r.Err(), native.ErrMemory) || !strings.Contains(r.String(), "cpu refuses the module") {
		t.Errorf("a tensor of 4 GiB: %v, %v", r, err)
	}
	if _, err := rlx.OpenFor(sum, rlx.Policy{Only: []string{"cpu"}}); !errors.Is(err, native.ErrMemory) {
		t.Errorf("it is opened: %v", err)
	}
	t.Setenv(native.MemoryVariable, "")
	if r, err := rlx.ReportOn(sum, "cpu"); err != nil || r.Err() != nil {
		t.Errorf("with enough: %v, %v", r, err)
	}
}

func TestOpenForFollowsThePolicy(t *testing.T) {
	register(t, &picky{name: "noexp", node: refuse("exp")})
	if err := native.Register(absent{}); err != nil && !errors.Is(err, ir.ErrName) {
		t.Fatal(err)
	}
	plain := moduleOf(t, func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", ir.F32))) })
	for _, c := range []struct {
		policy rlx.Policy
		module *ir.Module
		want   string
		kind   error
	}{
		{rlx.Policy{}, softmaxModule(t), "cpu", nil},
		{rlx.Policy{Prefer: []string{"absent", "noexp"}}, plain, "noexp", nil},
		{rlx.Policy{Prefer: []string{"noexp"}}, softmaxModule(t), "cpu", nil},
		{rlx.Policy{Only: []string{"absent", "noexp", "cpu"}}, softmaxModule(t), "cpu", nil},
		{rlx.Policy{Only: []string{"absent", "noexp"}}, softmaxModule(t), "", ir.ErrUnsupported},
		{rlx.Policy{Only: []string{"absent"}}, plain, "", native.ErrUnavailable},
		{rlx.Policy{Only: []string{"abacus"}}, plain, "", ir.ErrName},
		{rlx.Policy{Only: []string{"cpu"}, Deny: []string{"cpu"}}, plain, "", ir.ErrName},
		{rlx.Policy{}, nil, "", ir.ErrGraph},
		{rlx.Policy{}, &ir.Module{Entries: []ir.Entry{{Name: "e"}}}, "", ir.ErrGraph},
	} {
		s, err := rlx.OpenFor(c.module, c.policy)
		if c.kind != nil {
			if !errors.Is(err, c.kind) {
				t.Errorf("%+v: %v, not of kind %v", c.policy, err, c.kind)
			}
			continue
		}
		if err != nil || s.Device().Name != c.want {
			t.Errorf("%+v: %v, not %s", c.policy, err, c.want)
		}
	}
}

func TestOpenTakesLists(t *testing.T) {
	register(t, &picky{name: "noexp", node: refuse("exp")})
	if err := native.Register(absent{}); err != nil && !errors.Is(err, ir.ErrName) {
		t.Fatal(err)
	}
	for _, c := range []struct {
		given, variable, want string
		kind                  error
	}{
		{"", "", "cpu", nil},
		{"absent, noexp ,cpu", "", "noexp", nil},
		{"-noexp", "", "cpu", nil},
		{"noexp,auto", "", "noexp", nil},
		{"", "noexp,cpu", "noexp", nil},
		{"cpu", "noexp", "cpu", nil},
		{"", "abacus", "", ir.ErrName},
		{"absent,abacus", "", "", native.ErrUnavailable},
		{"absent,abacus", "", "", ir.ErrName},
		{"cpu,", "", "", ir.ErrName},
		{"-", "", "", ir.ErrName},
		{"tpu", "", "", ir.ErrName},
	} {
		t.Setenv(rlx.DeviceVariable, c.variable)
		s, err := rlx.Open(c.given)
		if c.kind != nil {
			if !errors.Is(err, c.kind) {
				t.Errorf("%q: %v, not of kind %v", c.given, err, c.kind)
			}
			continue
		}
		if err != nil || s.Device().Name != c.want {
			t.Errorf("%q with %q: %v, %v, not %s", c.given, c.variable, s, err, c.want)
		}
	}
	if p, err := rlx.ParsePolicy("cuda,-coreml"); err != nil || !slices.Equal(p.Only, []string{"cuda"}) || !slices.Equal(p.Deny, []string{"coreml"}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestOpenForReadsTheEnvironment opens a device for a module with the zero policy and with one that names devices.
func TestOpenForReadsTheEnvironment(t *testing.T) {
	register(t, &picky{name: "noexp", node: refuse("exp")})
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: averagesGraph(t, ir.F32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variable, want string
		policy         rlx.Policy
		kind           error
	}{
		{"", "cpu", rlx.Policy{}, nil},
		{"noexp", "noexp", rlx.Policy{}, nil},
		{"noexp", "cpu", rlx.Policy{Only: []string{"cpu"}}, nil},
		{"noexp,auto", "noexp", rlx.Policy{}, nil},
		{"abacus", "", rlx.Policy{}, ir.ErrName},
		{"cpu,", "", rlx.Policy{}, ir.ErrName},
	} {
		t.Setenv(rlx.DeviceVariable, c.variable)
		s, err := rlx.OpenFor(m, c.policy)
		if !errors.Is(err, c.kind) || err == nil && s.Device().Name != c.want {
			t.Errorf("%q: %v, %v, want %s, %v", c.variable, s, err, c.want, c.kind)
		}
	}
}

// TestPoliciesAreThoseOfTypeScript reads ir/irtest/cases/devices.json, as the tests of TypeScript do.
func TestPoliciesAreThoseOfTypeScript(t *testing.T) {
	data, err := os.ReadFile("ir/irtest/cases/devices.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Lists []struct {
			List               string
			Only, Prefer, Deny []string
			Kind               string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Lists) == 0 {
		t.Fatal(err)
	}
	for _, c := range file.Lists {
		p, err := rlx.ParsePolicy(c.List)
		if c.Kind != "" {
			if !errors.Is(err, kindsOfRefusals[c.Kind]) {
				t.Errorf("%q: %v, not of kind %s", c.List, err, c.Kind)
			}
			continue
		}
		if err != nil || !slices.Equal(p.Only, c.Only) || !slices.Equal(p.Prefer, c.Prefer) || !slices.Equal(p.Deny, c.Deny) {
			t.Errorf("%q: %+v, %v", c.List, p, err)
		}
	}
}

func TestSessionsCloseTheirPrograms(t *testing.T) {
	s := session(t)
	m := moduleOf(t, func(b *ir.Builder) {
		n := b.State("n", ir.I32)
		b.SetState("n", ops.Add(b, n, ops.Const(b, ir.I32, 1)))
	})
	var open []*rlx.Program
	for range 3 {
		p, err := s.Compile(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, p)
	}
	for range 10 {
		if _, err := open[0].Run(ctx, "run", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if n, err := open[0].Get(ctx, "n"); err != nil || n.Data[0] != 10 {
		t.Errorf("after 10 runs n is %v, %v", n, err)
	}
	if err := open[1].Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Errorf("with a closed program: %v", err)
	}
	if err := errors.Join(s.Close(done), s.Close(ctx)); err != nil { // idle programs close though ctx is done
		t.Fatal(err)
	}
	for _, p := range open {
		if _, err := p.Get(ctx, "n"); !errors.Is(err, native.ErrClosed) {
			t.Errorf("after closing: %v", err)
		}
		if err := p.Sync(ctx); !errors.Is(err, native.ErrClosed) {
			t.Errorf("after closing: %v", err)
		}
	}
	if _, err := s.Compile(ctx, m); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a closed session compiles: %v", err)
	}
}
