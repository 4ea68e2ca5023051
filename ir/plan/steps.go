package plan

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel"
)

// addSteps prints the kernels and lists the dispatches, loops nested.
func (c *entryCompiler) addSteps() error {
	type open struct {
		loop  *kernel.Loop
		steps []Step
	}
	stack := []open{{}}
	leave := func() {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out := &stack[len(stack)-1].steps
		*out = append(*out, &Repeat{Count: top.loop.Count, Steps: top.steps})
	}
	for _, l := range c.launches {
		for len(stack)-1 > len(l.loops) || len(stack) > 1 && stack[len(stack)-1].loop != l.loops[len(stack)-2] {
			leave()
		}
		for len(stack)-1 < len(l.loops) {
			stack = append(stack, open{loop: l.loops[len(stack)-1]})
		}
		d, err := c.dispatch(l.Launch)
		if err != nil {
			return err
		}
		top := &stack[len(stack)-1].steps
		*top = append(*top, d)
	}
	for len(stack) > 1 {
		leave()
	}
	c.entry.Steps = stack[0].steps
	return nil
}

// dispatch binds a launch and prints its kernel.
func (c *entryCompiler) dispatch(l kernel.Launch) (*Dispatch, error) {
	k := cloneArrays(l.Kernel)
	bindings := c.bindings(k, l.Args)
	for len(bindings) > c.target.Limits.StorageBuffers {
		var err error
		if k, bindings, err = mergeLargest(k, bindings); err != nil {
			return nil, err
		}
	}
	setAccess(k, bindings)
	number, err := c.kernel(k)
	return &Dispatch{Kernel: number, Groups: l.Kernel.Groups, Bindings: bindings}, err
}

func cloneArrays(k *kernel.Kernel) *kernel.Kernel {
	c := *k
	c.Arrays = slices.Clone(k.Arrays)
	return &c
}

// bindings returns the windows of a launch's storage arrays.
func (c *entryCompiler) bindings(k *kernel.Kernel, args []*kernel.Tensor) []Binding {
	out := make([]Binding, len(args))
	for i, t := range args {
		if t == nil {
			out[i] = Binding{c.statusBuffer(), 0, StatusBytes}
			continue
		}
		r := c.regions[t]
		out[i] = Binding{r.buffer, r.offset, r.bytes}
	}
	return out
}

// mergeLargest puts the arrays of the buffer that has most of them into one
// binding that spans them all.
func mergeLargest(k *kernel.Kernel, bindings []Binding) (*kernel.Kernel, []Binding, error) {
	members := map[int][]int{}
	most := bindings[0].Buffer
	for i, b := range bindings {
		members[b.Buffer] = append(members[b.Buffer], i)
		if n, m := len(members[b.Buffer]), len(members[most]); n > m || n == m && b.Buffer < most {
			most = b.Buffer
		}
	}
	if len(members[most]) < 2 {
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "kernel %s needs %d bindings, and no two of its tensors share an arena", k.Name, len(bindings))
	}
	from, to := bindings[members[most][0]].Offset, 0
	for _, i := range members[most] {
		from = min(from, bindings[i].Offset)
		to = max(to, bindings[i].Offset+bindings[i].Bytes)
	}
	var windows []kernel.Window
	for _, i := range members[most] {
		windows = append(windows, kernel.Window{Array: i, Offset: bindings[i].Offset - from})
	}
	merged, err := kernel.MergeArrays(k, windows, to-from)
	if err != nil {
		return nil, nil, err
	}
	first := members[most][0]
	var out []Binding
	for i, b := range bindings {
		switch {
		case i == first:
			out = append(out, Binding{most, from, to - from})
		case b.Buffer != most:
			out = append(out, b)
		}
	}
	return merged, out, nil
}

// setAccess widens the access of arrays to that of their whole buffer in this
// dispatch: WebGPU refuses a buffer that is bound for reading and for writing
// at once, even where the windows are disjoint.
func setAccess(k *kernel.Kernel, bindings []Binding) {
	written := map[int]bool{}
	for i, b := range bindings {
		if k.Arrays[i].Access != kernel.Read {
			written[b.Buffer] = true
		}
	}
	for i, b := range bindings {
		if a := &k.Arrays[i]; a.Access == kernel.Read && written[b.Buffer] {
			a.Access = kernel.ReadWrite
		}
	}
}

// kernel prints a kernel and returns its number; kernels with one text are one.
func (c *entryCompiler) kernel(k *kernel.Kernel) (int, error) {
	source, err := c.printer.Print(k)
	if err != nil {
		return 0, err
	}
	if number, ok := c.kernels[source]; ok {
		return number, nil
	}
	out := Kernel{Name: k.Name, Source: source, Workgroup: k.Workgroup, Counters: k.Counters}
	for _, a := range k.Arrays {
		switch a.Space {
		case kernel.Storage:
			out.Storage = append(out.Storage, a.Access)
		case kernel.Shared:
			out.SharedBytes += a.Len * a.Width * kernel.DeviceSize(a.DType)
		}
	}
	out.ScalarBytes = 4 * len(k.Scalars)
	c.kernels[source] = len(c.plan.Kernels)
	c.plan.Kernels = append(c.plan.Kernels, out)
	c.printed = append(c.printed, k)
	return len(c.plan.Kernels) - 1, nil
}
