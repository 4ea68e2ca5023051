package clike

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Roles describes the warp specialisation of a language: roles, mbarriers with phases,
// and TMA copies by tensor maps. Mbarriers are passed by address.
type Roles struct {
	// Thread is the number of a thread, an int.
	Thread string
	// Barrier returns a barrier among the threads of a role, numbered from 1.
	Barrier func(role, threads int) string
	Copy    func(w *Writer, c *TMACopy) string
	Arrive  func(w *Writer, barrier string) string
	Await   func(w *Writer, barrier, phase string) string
}

// TMACopy is a [loop.CopyTMA] of bytes to an address, from the coordinates From, in im2col mode offset by Offset.
type TMACopy struct {
	Map, Bytes   int
	To           string
	From, Offset []string
	Barrier      string
}

// role writes a statement of warp specialisation.
func (w statements) role(s loop.Stmt) {
	d := w.d.Async.Roles
	if d == nil {
		w.Fail("%s", w.k.Label(s))
		return
	}
	switch s := s.(type) {
	case *loop.Roles:
		w.roles(s)
	case *loop.CopyTMA:
		b := &w.k.TensorMaps[s.Map]
		e := w.bind(slices.Concat(s.From, s.Offset, []scalar.Expr{s.ToAt, s.At})...)
		at := make([]string, len(s.From)+len(s.Offset))
		for i := range at {
			at[i] = w.expr(e[i]).s
		}
		n, from := len(at), len(s.From)
		w.line(d.Copy(w.Writer, &TMACopy{
			Map: s.Map, Bytes: b.Elements() * loop.DeviceSize(w.k.Arrays[b.Array].DType), To: "&" + w.element(s.To, e[n]),
			From: at[:from], Offset: at[from:], Barrier: w.mbarrier(s.Mbarrier, e[n+1]),
		}))
	case *loop.Arrive:
		w.line(d.Arrive(w.Writer, w.mbarrier(s.Mbarrier, w.bind(s.At)[0])))
	case *loop.Await:
		e := w.bind(s.At, s.Phase)
		w.line(d.Await(w.Writer, w.mbarrier(s.Mbarrier, e[0]), w.expr(e[1]).s))
	}
}

// mbarrier returns the address of an mbarrier.
func (w statements) mbarrier(number int, at scalar.Expr) string {
	return "&" + w.out.Mbarriers[number] + "[" + w.expr(at).s + "]"
}

// roles writes a branch for each role.
func (w statements) roles(s *loop.Roles) {
	end := 0
	for i, r := range s.List {
		end += r.Threads
		head := "if (" + w.d.Async.Roles.Thread + " < " + strconv.Itoa(end) + ")"
		if i > 0 {
			head = "} else " + head
		}
		if i > 0 && i == len(s.List)-1 {
			head = "} else"
		}
		w.roleBarrier = w.d.Async.Roles.Barrier(i+1, r.Threads)
		w.nested(head, r.Body)
	}
	w.roleBarrier = ""
	w.line("}")
}

// kernelBarrier waits for the kernels before this one.
func (w statements) kernelBarrier() {
	if w.d.KernelBarrier != "" {
		w.out.KernelBarrier = true
		w.sb.WriteString(w.d.KernelBarrier + "\n")
	}
}

// barrier writes a barrier of the current role, or of the workgroup.
func (w statements) barrier() {
	if w.roleBarrier != "" {
		w.line(w.roleBarrier)
		return
	}
	for _, line := range w.d.Barrier(w.storageBarrier) {
		w.line(line)
	}
}
