package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

func attendsByMma(ir.Attend, ir.DType, loop.Caps) bool { return false }
func newAttendMma(a *attender) fragments               { return nil }
func (n *attention) stage() []Launch                   { return nil }
