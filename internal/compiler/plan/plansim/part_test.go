package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// A slice from 0 on reads its operand at its own position, yet runs over fewer
// points: what computes the operand cannot compute it on the way.
func TestPartOfAResultIsNotFusedAsIfItWereAll(t *testing.T) {
	for name, text := range map[string]string{
		"of a reduction": `graph "g" {
			%x = input "x" : f32[3,4]
			%m = reduce_max(%x) {axes=[0]} : f32[4]
			%s = slice(%m) {start=[0] size=[3] stride=[1]} : f32[3]
			output "s" = %s
		}`,
		"of a sum of updates": `graph "g" {
			%x = input "x" : f32[5]
			%i = input "i" : i32[2,1]
			%u = input "u" : f32[2]
			%m = scatter_add(%x, %i, %u) {axes=[0] operand_batch=[] index_batch=[] outside="drop" unique=false} : f32[5]
			%s = slice(%m) {start=[0] size=[2] stride=[1]} : f32[2]
			output "s" = %s
		}`,
		"before a reduction": `graph "g" {
			%x = input "x" : f32[3,4]
			%e = exp(%x) : f32[3,4]
			%s = slice(%e) {start=[0,0] size=[2,4] stride=[1,1]} : f32[2,4]
			%m = reduce_sum(%s) {axes=[1]} : f32[2]
			output "e" = %e
			output "m" = %m
		}`,
		"of a product": `graph "g" {
			%x = input "x" : f32[3,4]
			%y = input "y" : f32[4,5]
			%d = dot_general(%x, %y) {lhs_contract=[1] rhs_contract=[0] lhs_batch=[] rhs_batch=[]} : f32[3,5]
			%s = slice(%d) {start=[0,0] size=[2,5] stride=[1,1]} : f32[2,5]
			output "s" = %s
		}`,
	} {
		t.Run(name, func(t *testing.T) { checkText(t, text) })
	}
}

func checkText(t *testing.T, text string) {
	t.Helper()
	g, err := ir.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = float64(i%5) - 1.5
		}
		for i := range a.I {
			a.I[i] = int64(i + 1)
		}
		inputs[p.Name] = a
	}
	checkTwoRuns(t, g, inputs, plan.WebGPU())
}

func TestCollidingKernelNamesAreDistinguished(t *testing.T) {
	checkText(t, `graph "g" {
		%a = input "w.1" : f32[3]
		%b = input "w_1" : f32[3]
		%c = input "W-1" : f32[3]
		%d = input "w_1_2" : f32[3]
		%e = add(%a, %b) : f32[3]
		%f = mul(%c, %d) : f32[3]
		%g = sub(%e, %f) : f32[3]
		output "y" = %g
	}`)
}

// What one user may look through must still be stored for another.
func TestViewOfARunningSumAndALoopIsStored(t *testing.T) {
	checkText(t, `graph "g" {
		%x = input "x" : f32[4,2]
		%t = transpose(%x) {perm=[1,0]} : f32[2,4]
		%c = cumsum(%t) {axis=0 reverse=true exclusive=true} : f32[2,4]
		%s = scan(%t, %c) {consts=1 carries=1 length=[2] reverse=false} : f32[2,4]
		graph "step" {
			%u = input "t" : f32[2,4]
			%v = input "c" : f32[2,4]
			%w = add(%u, %v) : f32[2,4]
			output "c" = %w
		}
		output "y" = %s
	}`)
}
