package plan_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
)

// function is one of a module by hand: its type is a list of parameters and one of results.
type function struct {
	name            string
	params, results []byte
}

const i32, f32, i64 = 0x7f, 0x7d, 0x7e

// module encodes functions with empty bodies, after imports of a function of one f32 and of a
// memory; extra exports are given in encoded form.
func module(functions []function, exports ...[]byte) []byte {
	var types, uses, bodies [][]byte
	types = append(types, []byte{0x60, 1, f32, 0})
	for i, f := range functions {
		types = append(types, join([]byte{0x60}, counted(f.params), counted(f.results)))
		uses = append(uses, []byte{byte(1 + i)})
		exports = append(exports, join(counted([]byte(f.name)), []byte{0, byte(1 + i)}))
		bodies = append(bodies, counted([]byte{0, 0x0b}))
	}
	imports := [][]byte{
		join(counted([]byte("m")), counted([]byte("f")), []byte{0, 0}),
		join(counted([]byte("rlx")), counted([]byte("memory")), []byte{2, 1, 0, 0x80, 0x80, 4}),
		join(counted([]byte("m")), counted([]byte("t")), []byte{1, 0x70, 0, 0}),
		join(counted([]byte("m")), counted([]byte("g")), []byte{3, f32, 0}),
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id    byte
		items [][]byte
	}{{1, types}, {2, imports}, {3, uses}, {7, exports}, {10, bodies}} {
		out = append(append(out, s.id), counted(join(append([][]byte{{byte(len(s.items))}}, s.items...)...))...)
	}
	return out
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// counted is a text or a vector of bytes, of fewer than 16384.
func counted(b []byte) []byte {
	if len(b) < 128 {
		return append([]byte{byte(len(b))}, b...)
	}
	return append([]byte{byte(len(b)) | 0x80, byte(len(b) >> 7)}, b...)
}

// coded returns the plan of package plantest as if it were for WebAssembly, and the functions
// that its kernels are: one for each, as all dispatches of one have grids of one kind.
func coded() (*plan.Plan, []function) {
	p := plantest.Linear()
	functions := make([]function, len(p.Kernels))
	for i := range p.Kernels {
		k := &p.Kernels[i]
		k.Source, k.Draft = "k"+string(rune('0'+i)), ""
		n := len(k.Storage) + k.Counters
		if k.ScalarBytes > 0 {
			n++
		}
		functions[i] = function{name: k.Source, params: bytes.Repeat([]byte{i32}, n)}
	}
	for _, e := range p.Entries {
		for s := range plan.Each(e.Steps) {
			if d, is := s.(*plan.Dispatch); is {
				d.DraftGroups, d.Groups[0] = [3]int{}, 1
			}
		}
	}
	p.Code = module(functions)
	return p, functions
}

// codeCases are changes of that plan, as those of [refused]: those of the module change the
// kernel of number 1.
var codeCases = []planCase{
	{"nothing", func(*plan.Plan) {}, 0, "", false},
	{"no code at all", func(p *plan.Plan) { p.Code = []byte{} }, 45, `no function "k0"`, false},
	{"code that is no module", func(p *plan.Plan) { p.Code = []byte("export function k0() {}") }, 45, `no function "k0"`, false},
	{"a module that is cut", func(p *plan.Plan) { p.Code = p.Code[:60] }, 45, `no function "k0"`, false},
	{"another name", codeWith(func(f *function) { f.name = "other" }), 45, `no function "k1"`, false},
	{"a parameter less", codeWith(func(f *function) { f.params = f.params[1:] }), 45, `no function "k1" of `, false},
	{"a parameter more", codeWith(func(f *function) { f.params = append(f.params, i32) }), 45, `no function "k1" of `, false},
	{"a parameter of 64 bits", codeWith(func(f *function) { f.params[0] = i64 }), 45, `no function "k1" of `, false},
	{"a result", codeWith(func(f *function) { f.results = []byte{i32} }), 45, `no function "k1" of `, false},
	{"several workgroups", func(p *plan.Plan) { p.Entries[entryInit].Steps[0].(*plan.Dispatch).Groups[0] = 2 }, 45, `no function "k0" of `, false},
	{"a memory of the kernel's name", func(p *plan.Plan) {
		p.Code = module(nil, join(counted([]byte("k0")), []byte{2, 0}))
	}, 45, `no function "k0"`, false},
	{"an import of the kernel's name", func(p *plan.Plan) {
		p.Code = module(nil, join(counted([]byte("k0")), []byte{0, 0}))
	}, 45, `no function "k0"`, false},
	{"a function that is not there", func(p *plan.Plan) {
		p.Code = module(nil, join(counted([]byte("k0")), []byte{0, 99}))
	}, 45, `no function "k0"`, false},
}

// codeWith returns the change of a plan that changes the function of a kernel.
func codeWith(change func(f *function)) func(p *plan.Plan) {
	return func(p *plan.Plan) {
		_, functions := coded()
		change(&functions[1])
		p.Code = module(functions)
	}
}

func TestRulesOfCode(t *testing.T) {
	rulesHold(t, func() *plan.Plan { p, _ := coded(); return p }, codeCases)
}

// TestModifiedModulesDecodeQuickly changes bytes of a module: for any change, the plan
// is right or breaks the rule.
func TestModifiedModulesDecodeQuickly(t *testing.T) {
	p, _ := coded()
	whole := p.Code
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		p.Code = bytes.Clone(whole[:1+random.IntN(len(whole))])
		for range 1 + random.IntN(3) {
			p.Code[random.IntN(len(p.Code))] = byte(random.Uint32())
		}
		var format *plan.FormatError
		if err := plan.Validate(p); err != nil && (!errors.As(err, &format) || format.Rule != 45) {
			t.Fatalf("module %x: %v", p.Code, err)
		}
	}
}
