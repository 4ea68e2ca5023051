package scalar

import (
	"math"
	"math/rand"

	"github.com/rlx-go/rlx/ir/dtype"
)

// grower makes random expressions over a few variables of small range, from a
// source of choices that may be random or a fuzzer's bytes.
type grower struct {
	pick func(n int) int // a number in [0, n)
	vars []Expr
	pool []Expr // earlier expressions, for sharing
	typ  dtype.DType
}

func newGrower(pick func(int) int, t dtype.DType) *grower {
	g := &grower{pick: pick, typ: t}
	for _, name := range []string{"i", "j", "k"} {
		lo := int64(0)
		if !t.IsUnsigned() && pick(3) == 0 {
			lo = -int64(pick(5))
		}
		g.vars = append(g.vars, NewVar(name, t, lo, lo+int64(pick(7))))
	}
	return g
}

// grow adds steps random operations and returns the last integer one.
func (g *grower) grow(steps int) Expr {
	g.pool = append(g.pool, g.vars...)
	for range steps {
		g.pool = append(g.pool, g.integer())
	}
	return g.pool[len(g.pool)-1]
}

var someConstants = []int64{0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 100, -1, -2, -3, -4, 127, -128, math.MaxInt64}

func (g *grower) any() Expr {
	if g.pick(4) == 0 {
		return ConstI(g.typ, someConstants[g.pick(len(someConstants))])
	}
	// Recent ones are likelier, so that depth grows.
	n := len(g.pool)
	return g.pool[max(n-1-g.pick(6), g.pick(n))]
}

func (g *grower) small() Expr { return ConstI(g.typ, someConstants[1+g.pick(11)]) }

func (g *grower) integer() Expr {
	a, b := g.any(), g.any()
	switch g.pick(16) {
	case 0, 1, 2:
		return Add(a, Mul(b, g.small()))
	case 3:
		return Sub(a, b)
	case 4:
		return Mul(a, g.small())
	case 5, 6:
		return New([]Op{OpDiv, OpFloorDiv}[g.pick(2)], a, g.small())
	case 7, 8:
		return New([]Op{OpRem, OpMod}[g.pick(2)], a, g.small())
	case 9:
		return New([]Op{OpDiv, OpFloorDiv, OpRem, OpMod, OpMul}[g.pick(5)], a, b)
	case 10:
		return New([]Op{OpMin, OpMax, OpAnd, OpOr, OpXor}[g.pick(5)], a, b)
	case 11:
		return New([]Op{OpShl, OpShr}[g.pick(2)], a, g.small())
	case 12:
		return New([]Op{OpNeg, OpAbs, OpSign, OpNot, OpPopCount}[g.pick(5)], a)
	case 13:
		other := []dtype.DType{dtype.I32, dtype.U32, dtype.I64, dtype.U8, dtype.I16}[g.pick(5)]
		return Convert(Convert(a, other), g.typ)
	case 14:
		return Clamp(a, b, g.any())
	}
	return Select(g.boolean(), a, b)
}

func (g *grower) boolean() Expr {
	compare := func() Expr { return New(OpEq+Op(g.pick(6)), g.any(), g.any()) }
	switch g.pick(4) {
	case 0:
		return New([]Op{OpAnd, OpOr, OpXor}[g.pick(3)], compare(), compare())
	case 1:
		return Not(compare())
	}
	return compare()
}

// values calls visit with every assignment of the variables.
func (g *grower) values(visit func(env *Env)) {
	env := &Env{Vars: map[string]Value{}}
	var set func(k int)
	set = func(k int) {
		if k == len(g.vars) {
			visit(env)
			return
		}
		for x := g.vars[k].Lo; x <= g.vars[k].Hi; x++ {
			env.Vars[g.vars[k].Name] = Value{I: x}
			set(k + 1)
		}
	}
	set(0)
}

// pickBytes makes choices from a fuzzer's bytes, 0 once they are used up.
func pickBytes(data []byte) func(int) int {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		c := int(data[0]) % n
		data = data[1:]
		return c
	}
}

func pickRandom(seed int64) func(int) int { return rand.New(rand.NewSource(seed)).Intn }

var intTypes = []dtype.DType{dtype.I32, dtype.U32, dtype.I64, dtype.U64, dtype.I8, dtype.U16}
