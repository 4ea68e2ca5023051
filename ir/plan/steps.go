package plan

import (
	"cmp"
	"maps"
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

// cut replaces launches that cannot be bound as their tensors lie.
func (c *entryCompiler) cut() error {
	launches := c.launches
	c.launches = nil
	for _, l := range launches {
		if err := c.addCut(l); err != nil {
			return err
		}
	}
	return nil
}

// addCut adds a launch. A group of parts side by side that cannot be bound is cut
// in two between parts, again and again: nothing goes from one to the other.
func (c *entryCompiler) addCut(l placedLaunch) error {
	parts := l.group.Parts
	if len(parts) < 2 || c.bindable(l.Args) {
		c.launches = append(c.launches, l)
		return nil
	}
	for _, half := range [][]*kernel.Group{parts[:len(parts)/2], parts[len(parts)/2:]} {
		g := l.group.Cut(half)
		launches, err := l.program.Schedule(g, c.target.device())
		if err != nil {
			return err
		}
		for _, launch := range launches {
			if err := c.addCut(placedLaunch{launch, l.program, g, l.loops}); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindable reports whether a kernel can bind these tensors, those in one arena
// together where all of them are of words.
func (c *entryCompiler) bindable(args []*kernel.Tensor) bool {
	bindings := len(args)
	for _, members := range c.shareable(args) {
		bindings -= len(members) - 1
	}
	return bindings <= c.target.Limits.StorageBuffers
}

// shareable returns, by buffer, the places in args of tensors that one binding
// can hold: all of that buffer, if they are of words.
func (c *entryCompiler) shareable(args []*kernel.Tensor) map[int][]int {
	out := map[int][]int{}
	for i, t := range args {
		if t != nil {
			out[c.regions[t].buffer] = append(out[c.regions[t].buffer], i)
		}
	}
	for buffer, members := range out {
		words := !slices.ContainsFunc(members, func(i int) bool { return kernel.DeviceSize(args[i].DType) != WordBytes })
		if !words || c.plan.Buffers[buffer].Bytes/WordBytes > kernel.MaxElements {
			delete(out, buffer)
		}
	}
	return out
}

// dispatch binds a launch and prints its kernel.
func (c *entryCompiler) dispatch(l kernel.Launch) (*Dispatch, error) {
	k, bindings := l.Kernel, c.bindings(l.Args)
	if len(bindings) > c.target.Limits.StorageBuffers {
		var err error
		if k, bindings, err = c.merged(k, bindings, c.shareable(l.Args)); err != nil {
			return nil, err
		}
	}
	number, err := c.kernel(kernelKey{k, accessOf(k, bindings)})
	return &Dispatch{Kernel: number, Groups: l.Kernel.Groups, Bindings: bindings}, err
}

// bindings returns the windows of a launch's storage arrays.
func (c *entryCompiler) bindings(args []*kernel.Tensor) []Binding {
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

// merged puts arrays of one buffer into one binding that spans them all, those
// of the buffer that has most of them first, until a kernel can have the
// bindings.
func (c *entryCompiler) merged(k *kernel.Kernel, bindings []Binding, shareable map[int][]int) (*kernel.Kernel, []Binding, error) {
	buffers := slices.SortedFunc(maps.Keys(shareable), func(a, b int) int {
		return cmp.Or(len(shareable[b])-len(shareable[a]), a-b)
	})
	left := len(bindings)
	var spans []kernel.Span
	gone := map[int]bool{}
	for _, buffer := range buffers {
		members := shareable[buffer]
		if left <= c.target.Limits.StorageBuffers || len(members) < 2 {
			break
		}
		from, to := bindings[members[0]].Offset, 0
		for _, i := range members {
			from = min(from, bindings[i].Offset)
			to = max(to, bindings[i].Offset+bindings[i].Bytes)
		}
		span := kernel.Span{Bytes: to - from}
		for _, i := range members {
			span.Windows = append(span.Windows, kernel.Window{Array: i, Offset: bindings[i].Offset - from})
			gone[i] = i != members[0]
		}
		bindings[members[0]] = Binding{buffer, from, to - from}
		spans = append(spans, span)
		left -= len(members) - 1
	}
	if left > c.target.Limits.StorageBuffers {
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "kernel %s needs %d bindings, and this target has %d", k.Name, left, c.target.Limits.StorageBuffers)
	}
	k, err := kernel.MergeArrays(k, spans)
	var out []Binding
	for i, b := range bindings {
		if !gone[i] {
			out = append(out, b)
		}
	}
	return k, out, err
}

// kernelKey is a kernel as it is used in a dispatch: with the access of each
// storage array, a byte each.
type kernelKey struct {
	kernel *kernel.Kernel
	access string
}

// accessOf returns the access of the arrays, widened to that of their whole
// buffer in this dispatch: WebGPU refuses a buffer that is bound for reading and
// for writing at once, even where the windows are disjoint.
func accessOf(k *kernel.Kernel, bindings []Binding) string {
	written := map[int]bool{}
	for i, b := range bindings {
		if k.Arrays[i].Access != kernel.Read {
			written[b.Buffer] = true
		}
	}
	out := make([]byte, len(bindings))
	for i, b := range bindings {
		a := k.Arrays[i].Access
		if a == kernel.Read && written[b.Buffer] {
			a = kernel.ReadWrite
		}
		out[i] = byte(a)
	}
	return string(out)
}

// with returns the kernel with other accesses.
func (key kernelKey) with() *kernel.Kernel {
	k := *key.kernel
	k.Arrays = slices.Clone(k.Arrays)
	for i := range key.access {
		k.Arrays[i].Access = kernel.Access(key.access[i])
	}
	return &k
}

// kernel prints a kernel, unless it is known, and returns its number; kernels
// with one text are one.
func (c *entryCompiler) kernel(key kernelKey) (int, error) {
	if number, ok := c.numbers[key]; ok {
		return number, nil
	}
	k := key.with()
	source, err := c.printer.Print(k)
	if err != nil {
		return 0, err
	}
	number, ok := c.kernels[source]
	if !ok {
		number = c.addKernel(k, source)
	}
	c.numbers[key], c.kernels[source] = number, number
	return number, nil
}

func (c *entryCompiler) addKernel(k *kernel.Kernel, source string) int {
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
	c.plan.Kernels = append(c.plan.Kernels, out)
	c.printed = append(c.printed, k)
	return len(c.plan.Kernels) - 1
}
