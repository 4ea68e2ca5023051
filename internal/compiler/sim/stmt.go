package sim

import (
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// compiler translates statements to steps on the columns of a machine.
type compiler struct {
	m     *machine
	scope map[string]column
	path  []string
	err   error

	fragments fragments
	async     asyncCompiler

	// Temporary columns are reused by the next statement.
	temps [2][]column // floats, others
	used  [2]int
	steps []executor // of the current statement
	done  map[scalar.Expr]column
	fixed map[constant]column

	variables map[string]bool // those in scope that can be assigned to
	checked   []ranged        // ranges of constants in scope that have been checked
}

// ranged is a constant with a range of its values.
type ranged struct {
	name   string
	lo, hi int64
}

// constant identifies a constant by type and bits.
type constant struct {
	typ  dtype.DType
	bits uint64
}

func newCompiler(k *loop.Kernel) *compiler {
	m := &machine{k: k, threads: k.Threads(), builtin: map[string]column{}}
	for t := range m.threads {
		m.all = append(m.all, int32(t))
	}
	for _, a := range k.Arrays {
		m.arrays = append(m.arrays, newArray(a, m.threads))
	}
	if i := k.StatusArray(); i >= 0 {
		m.status = m.arrays[i]
	}
	m.whole = &part{all: m.all}
	m.prepare(k.Body)
	c := &compiler{m: m, scope: map[string]column{}, fixed: map[constant]column{}, variables: map[string]bool{}}
	c.fragments, c.async = fragments{c, map[string]*fragment{}}, asyncCompiler{c}
	return c
}

// block compiles a sequence of statements.
func (c *compiler) block(body []loop.Stmt) executor {
	depth, checked := len(c.path), len(c.checked)
	var list []statement
	var defined []string
	for _, s := range body {
		c.path = append(c.path[:depth], c.m.k.Label(s))
		at := strings.Join(c.path, " > ")
		names := c.stmt(s)
		defined = append(defined, names...)
		list = append(list, statement{at, c.steps})
	}
	c.path, c.checked = c.path[:depth], c.checked[:checked]
	for _, name := range defined {
		delete(c.scope, name)
		delete(c.variables, name)
	}
	m := c.m
	return func(active []int32) {
		for i := range list {
			m.at = list[i].at
			for _, s := range list[i].steps {
				if s(active); m.fault != nil {
					return
				}
			}
		}
	}
}

// statement is a compiled statement.
type statement struct {
	at    string // its path
	steps []executor
}

// sequence runs steps until one faults.
func (m *machine) sequence(steps []executor) executor {
	return func(active []int32) {
		for _, s := range steps {
			s(active)
			if m.fault != nil {
				return
			}
		}
	}
}

// begin starts a statement and releases the temporary columns.
func (c *compiler) begin() {
	c.steps, c.used, c.done = nil, [2]int{}, map[scalar.Expr]column{}
}

func (c *compiler) add(s executor) { c.steps = append(c.steps, s) }

// define creates a variable with its column.
func (c *compiler) define(name string, t dtype.DType) column {
	col := newColumn(t, c.m.threads)
	c.scope[name] = col
	return col
}

// stmt compiles a statement to c.steps and returns the names it brings into scope.
func (c *compiler) stmt(s loop.Stmt) []string {
	c.begin()
	switch s := s.(type) {
	case *loop.Let:
		c.move(c.expr(s.Value), func() column { return c.define(s.Name, s.Value.Type) })
		return []string{s.Name}
	case *loop.Var:
		c.move(c.expr(s.Init), func() column { return c.define(s.Name, s.Init.Type) })
		c.variables[s.Name] = true
		return []string{s.Name}
	case *loop.Assign:
		value := c.expr(s.Value)
		c.free(s.Name)
		c.move(value, func() column { return c.scope[s.Name] })
	case *loop.Store:
		c.store(c.m.arrays[s.Array], c.expr(s.At), c.expr(s.Value))
	case *loop.StoreVec:
		var values []column
		for _, v := range s.Values {
			values = append(values, c.expr(v))
		}
		c.store(c.m.arrays[s.Array], c.expr(s.At), values...)
	case *loop.LoadVec:
		a, at := c.m.arrays[s.Array], c.expr(s.At)
		var outs []column
		for _, name := range s.Names {
			outs = append(outs, c.define(name, a.DType))
		}
		c.load(a, at, outs...)
		return s.Names
	case *loop.For:
		c.loop(s)
	case *loop.If:
		c.branch(s)
	case *loop.Barrier:
		if !s.Kernels {
			c.barrier()
		}
	case *loop.AtomicOp:
		return c.atomic(s)
	case *loop.Subgroup:
		return c.subgroup(s)
	case *loop.Pack:
		low, high := c.expr(s.Low), c.expr(s.High)
		c.free(s.Name)
		c.pack(s, low, high)
	case *loop.Shuffle:
		return c.shuffle(s)
	case *loop.FragmentZero, *loop.FragmentLoad, *loop.FragmentMulAdd, *loop.FragmentStore:
		return c.fragments.stmt(s)
	default:
		c.async.stmt(s)
	}
	return nil
}

// move copies a value to the column that to returns; to is called after the value is compiled.
func (c *compiler) move(from column, to func() column) {
	col := to()
	c.add(func(active []int32) { col.copyFrom(from, active) })
}

// store writes one vector per thread; values has a column for each of its elements.
func (c *compiler) store(a *array, at column, values ...column) {
	if a.Space == loop.Private && a.Width == 1 {
		c.add(storePrivate(c.m, a, at, values[0]))
		return
	}
	m := c.m
	c.add(func(active []int32) {
		for _, t := range active {
			elem := m.index(a, at.i[t], t)
			if elem < 0 {
				return
			}
			for w, v := range values {
				if !m.noteWrite(a, elem+w, t) {
					return
				}
				a.put(elem+w, t, v)
			}
		}
		m.countAccess(a, at, active)
	})
}

// load reads one vector per thread.
func (c *compiler) load(a *array, at column, outs ...column) {
	if a.Space == loop.Private && a.Width == 1 {
		c.add(loadPrivate(c.m, a, at, outs[0]))
		return
	}
	m := c.m
	c.add(func(active []int32) {
		switch {
		case a.readOnly():
			m.loadReadOnly(a, at, outs, active)
			return
		case a.Space == loop.Shared && a.Width == 1 && a.async == nil && m.part.clock == nil:
			loadShared(m, a, at, outs[0], active)
			return
		}
		for _, t := range active {
			elem := m.index(a, at.i[t], t)
			if elem < 0 {
				return
			}
			for w, out := range outs {
				if !m.noteRead(a, elem+w, t) {
					return
				}
				a.get(elem+w, t, out)
			}
		}
		m.countAccess(a, at, active)
	})
}

func (c *compiler) loop(s *loop.For) {
	start, end := c.expr(s.Start), c.expr(s.End)
	step, _ := s.Step.IntConst()
	head, stop, v := c.m.sequence(c.steps), newColumn(s.Type(), c.m.threads), c.define(s.Var, s.Type())
	body := c.block(s.Body)
	delete(c.scope, s.Var)
	c.begin()
	m := c.m
	running := make([]int32, 0, m.threads)
	c.add(func(active []int32) {
		if head(active); m.fault != nil {
			return
		}
		stop.copyFrom(end, active)
		running = running[:0]
		for _, t := range active {
			if v.i[t] = start.i[t]; v.i[t] < stop.i[t] {
				running = append(running, t)
			}
		}
		for len(running) > 0 {
			if body(running); m.fault != nil {
				return
			}
			still := running[:0]
			for _, t := range running {
				if v.i[t] += step; v.i[t] < stop.i[t] {
					still = append(still, t)
				}
			}
			running = still
		}
	})
}

func (c *compiler) branch(s *loop.If) {
	cond := c.expr(s.Cond)
	head := c.m.sequence(c.steps)
	then, otherwise := c.block(s.Then), c.block(s.Else)
	c.begin()
	m := c.m
	yes, no := make([]int32, 0, m.threads), make([]int32, 0, m.threads)
	c.add(func(active []int32) {
		if head(active); m.fault != nil {
			return
		}
		yes, no = yes[:0], no[:0]
		for _, t := range active {
			if cond.i[t] != 0 {
				yes = append(yes, t)
			} else {
				no = append(no, t)
			}
		}
		if len(yes) > 0 {
			then(yes)
		}
		if len(no) > 0 && m.fault == nil {
			otherwise(no)
		}
	})
}
