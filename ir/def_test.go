package ir

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/ir/scalar"
)

func first(_ *Node, x []scalar.Expr) scalar.Expr { return x[0] }

// TestRegisterRefusesIncompleteDefinitions takes something away from a definition that
// is whole, or adds what does not go with it.
func TestRegisterRefusesIncompleteDefinitions(t *testing.T) {
	noJVP := func(*Builder, *Node, []Value, []Value, []Value) []Value { return nil }
	body := func(_ *Builder, _ *Node, in []Value) []Value { return in }
	for name, change := range map[string]func(d *Def){
		"no Infer":              func(d *Def) { d.Infer = nil },
		"no form":               func(d *Def) { d.Scalar = nil },
		"Scalar and Body":       func(d *Def) { d.Body = body },
		"Scalar and Lower":      func(d *Def) { d.Lower = &ControlLowering{} },
		"no derivative":         func(d *Def) { d.NoGrad = "" },
		"JVP and NoGrad":        func(d *Def) { d.JVP = noJVP },
		"too many are optional": func(d *Def) { d.Optional = 2 },
	} {
		d := &Def{Op: "test.whole", Operands: []string{"x"}, Infer: sameTypes, Scalar: first, NoGrad: "a test"}
		change(d)
		if err := Register(d); !errors.Is(err, ErrDef) || !strings.Contains(err.Error(), `"test.whole"`) {
			t.Errorf("%s: error %v, want one of kind %q that names the op", name, err, ErrDef)
		}
	}
	if err := Register(nil); !errors.Is(err, ErrDef) {
		t.Errorf("nil: error %v", err)
	}
	if err := Register(&Def{Op: "test.empty"}); !errors.Is(err, ErrDef) {
		t.Errorf("an empty definition: error %v", err)
	}
}

// TestRegistryIsSafeForManyGoroutines registers ops, some of them twice, while
// others look them up and build with them.
func TestRegistryIsSafeForManyGoroutines(t *testing.T) {
	var wait sync.WaitGroup
	var taken sync.Map
	for i := range 64 {
		op := Op(fmt.Sprintf("test.concurrent%d", i/2))
		wait.Add(2)
		go func() {
			defer wait.Done()
			if err := Register(&Def{Op: op, Operands: []string{"x"}, Infer: sameTypes, Scalar: first, NoGrad: "a test"}); err != nil {
				if _, again := taken.LoadOrStore(op, true); again || !errors.Is(err, ErrName) {
					t.Errorf("%s: %v", op, err)
				}
			}
			if _, ok := Lookup(op); !ok {
				t.Errorf("%s is not there", op)
			}
		}()
		go func() {
			defer wait.Done()
			_ = Ops()
			if _, err := Build("g", func(b *Builder) { b.Output("y", b.Add1(opTwice, nil, b.Input("x", F32))) }); err != nil {
				t.Error(err)
			}
		}()
	}
	wait.Wait()
}

// TestWrongScalarBodyIsAnErrorOfTheNode uses elementwise ops whose
// bodies do not fit their shape rules.
func TestWrongScalarBodyIsAnErrorOfTheNode(t *testing.T) {
	two := func(*Node) ([]Type, error) { return []Type{TypeOf(F32, N(2))}, nil }
	for name, c := range map[string]struct {
		infer func(n *Node) ([]Type, error)
		body  func(n *Node, x []scalar.Expr) scalar.Expr
		kind  error
		says  string
	}{
		"mixed types": {sameTypes, func(_ *Node, x []scalar.Expr) scalar.Expr {
			return scalar.Add(x[0], scalar.ConstI(I32, 1))
		}, ErrDType, "add(f32, i32)"},
		"another type":  {sameTypes, func(_ *Node, x []scalar.Expr) scalar.Expr { return scalar.Convert(x[0], I32) }, ErrDType, "must return f32"},
		"nothing":       {sameTypes, func(*Node, []scalar.Expr) scalar.Expr { return nil }, ErrDType, "must return f32"},
		"another shape": {two, first, ErrShape, "f32[2]"},
	} {
		op := Op("test.wrong_" + strings.ReplaceAll(name, " ", "_"))
		if err := Register(&Def{Op: op, Operands: []string{"x"}, Infer: c.infer, Scalar: c.body, NoGrad: "a test"}); err != nil {
			t.Fatal(err)
		}
		line := 0
		_, err := Build("g", func(b *Builder) {
			x := b.Input("x", F32, N(3))
			line = here() + 1
			b.Output("y", b.Add1(op, nil, x))
		})
		var e *OpError
		if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Op != op || e.Pos.Line != line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one of kind %q that names %s and line %d, and says %q", name, err, c.kind, op, line, c.says)
		}
	}
}
