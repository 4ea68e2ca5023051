package coreml

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/coreml/forms"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Support returns how a CoreML8 model computes a node in f32, by lowering it: natively, as
// one composite (claimed), or by its body.
func Support(n *ir.Node) native.Support {
	e := forms.NewEmitter(mil.NewBuilder(mainFunction, mil.CoreML8))
	for _, t := range n.Types() {
		if _, err := e.Type(t); err != nil {
			return native.Support{Level: native.Unsupported, Reason: err.Error()}
		}
	}
	in := make([]forms.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		t, err := e.Type(v.Type())
		if err != nil {
			return native.Support{Level: native.Unsupported, Reason: err.Error()}
		}
		in[i] = forms.Value{Ref: e.Input(fmt.Sprintf("x%d", i), t), Dims: t.Dims}
	}
	level := native.Native
	switch {
	case e.Claims(n):
		level = native.Claimed
	case n.Def().IsComposite():
		level = native.Decomposed
	}
	if n.Op() != ir.OpPort {
		e.Node(n, in)
	}
	if err := e.Err(); err != nil {
		return native.Support{Level: native.Unsupported, Reason: err.Error()}
	}
	return native.Support{Level: level}
}
