package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// FragmentSize is the number of rows and columns of a fragment: a matrix distributed over the
// threads of a subgroup in a device-specific layout. Fragments have names but are not operands
// of expressions; they can only be loaded, multiplied and stored. They are Metal's
// simdgroup_matrix (Metal Shading Language Specification, "SIMD-group Matrix Functions") and
// Dawn's subgroup_matrix. Fragment statements need uniform control flow in the workgroup and
// indices that are uniform in a subgroup.
const FragmentSize = 8

// FragmentZero defines an F32 fragment of zeros, the initial accumulator of [FragmentMulAdd].
type FragmentZero struct{ Name string }

// FragmentLoad defines a fragment from a shared array of F16, BF16 or F32 and of width 1.
// Element (r, c) is at At + r·Stride + c, or if Transposed is set at
// At + c·Stride + r. Right makes it a right operand of products, else it is a left operand.
type FragmentLoad struct {
	Name              string
	Array             int
	At                scalar.Expr
	Stride            int
	Transposed, Right bool
}

// FragmentMulAdd adds the product of two loaded fragments of one type to an F32 fragment.
type FragmentMulAdd struct{ Sum, A, B string }

// FragmentStore stores an F32 fragment to a shared array, laid out as for [FragmentLoad].
type FragmentStore struct {
	Array  int
	At     scalar.Expr
	Stride int
	Name   string
}

// HasFragments reports whether the kernel has fragment statements.
func (k *Kernel) HasFragments() bool {
	if !withAsync {
		return false
	}
	found := false
	Walk(k.Body, func(s Stmt) {
		_, zero := s.(*FragmentZero)
		_, load := s.(*FragmentLoad)
		found = found || zero || load
	})
	return found
}

// fragment returns the type of the fragment called name, which must be one of types.
func (c *checker) fragment(name string, types ...dtype.DType) (dtype.DType, error) {
	l, ok := c.scope[name]
	if ok && l.fragment {
		for _, t := range types {
			if l.typ == t {
				return t, nil
			}
		}
	}
	return dtype.Invalid, c.fail("%s is not a fragment of %s", name, types[0])
}

// fragments checks what all fragment statements require.
func (c *checker) fragments(uniform bool) error {
	if c.k.Subgroup[0] == 0 || c.k.Subgroup[0] != c.k.Subgroup[1] {
		return c.fail("fragments need a kernel with a single subgroup size")
	}
	return c.requireUniform(uniform)
}

// defineFragment brings a fragment into scope.
func (c *checker) defineFragment(s Stmt, name string, t dtype.DType) ([]string, error) {
	if err := c.define(s, name, t, false, false); err != nil {
		return nil, err
	}
	l := c.scope[name]
	l.fragment = true
	c.scope[name] = l
	return []string{name}, nil
}

// matrixStmt checks a fragment statement or an asynchronous one.
func (c *checker) matrixStmt(s Stmt, uniform bool) ([]string, error) {
	switch s := s.(type) {
	case *FragmentZero:
		return c.fragmentZero(s, uniform)
	case *FragmentLoad:
		return c.fragmentLoad(s, uniform)
	case *FragmentMulAdd:
		return nil, c.fragmentMulAdd(s, uniform)
	case *FragmentStore:
		return nil, c.fragmentStore(s, uniform)
	}
	return nil, c.async(s, uniform)
}

func (c *checker) fragmentZero(s *FragmentZero, uniform bool) ([]string, error) {
	if err := c.fragments(uniform); err != nil {
		return nil, err
	}
	return c.defineFragment(s, s.Name, dtype.F32)
}

func (c *checker) fragmentLoad(s *FragmentLoad, uniform bool) ([]string, error) {
	t, err := c.fragmentPlace(s.Array, s.At, s.Stride, loads, uniform)
	if err != nil {
		return nil, err
	}
	return c.defineFragment(s, s.Name, t)
}

func (c *checker) fragmentStore(s *FragmentStore, uniform bool) error {
	t, err := c.fragmentPlace(s.Array, s.At, s.Stride, stores, uniform)
	if err != nil {
		return err
	}
	if _, err := c.fragment(s.Name, dtype.F32); err != nil || t == dtype.F32 {
		return err
	}
	return c.fail("fragment of f32 stored in %s", t)
}

// fragmentPlace checks the memory of a fragment and returns its element type.
func (c *checker) fragmentPlace(array int, at scalar.Expr, stride int, write, uniform bool) (dtype.DType, error) {
	if err := c.fragments(uniform); err != nil {
		return dtype.Invalid, err
	}
	if _, err := c.exprs(dtype.I32, "the index", at); err != nil {
		return dtype.Invalid, err
	}
	a, err := c.access(array, 1, write, at)
	if err != nil {
		return dtype.Invalid, err
	}
	switch {
	case a.Space != Shared:
		return dtype.Invalid, c.fail("fragment in %s memory; it must be shared", a.Space)
	case a.DType != dtype.F16 && a.DType != dtype.BF16 && a.DType != dtype.F32:
		return dtype.Invalid, c.fail("fragment of %s; it must be f16, bf16 or f32", a.DType)
	case stride < FragmentSize:
		return dtype.Invalid, c.fail("fragment with the invalid stride %d", stride)
	}
	return a.DType, nil
}

// operand checks that a fragment was loaded as the left or right operand of products.
func (c *checker) operand(name string, right bool) error {
	if load, ok := c.scope[name].stmt.(*FragmentLoad); !ok || load.Right != right {
		return c.fail("fragment %s is not loaded as this operand", name)
	}
	return nil
}

func (c *checker) fragmentMulAdd(s *FragmentMulAdd, uniform bool) error {
	if err := c.fragments(uniform); err != nil {
		return err
	}
	if _, err := c.fragment(s.Sum, dtype.F32); err != nil {
		return err
	}
	t, err := c.fragment(s.A, dtype.F32, dtype.F16, dtype.BF16)
	if err != nil {
		return err
	}
	if _, err = c.fragment(s.B, t); err != nil {
		return err
	}
	if err := c.operand(s.A, false); err != nil {
		return err
	}
	return c.operand(s.B, true)
}
