package sched

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Key identifies the groups that can share a schedule: it hashes the canonical form and the
// target's capabilities by FNV-1a of 128 bits. A collision shares a schedule, which is slower
// at worst, since a schedule that does not fit is not used.
type Key [16]byte

// String returns the key as 32 hexadecimal digits, which [ParseKey] reads.
func (k Key) String() string {
	text := ""
	for _, b := range k {
		text += strconv.FormatUint(uint64(b)|0x100, 16)[1:]
	}
	return text
}

// ParseKey parses the text form of [Key.String]. The error is of kind [ir.ErrAttr].
func ParseKey(text string) (k Key, err error) {
	bad := len(text) != 2*len(k)
	for i := 0; i < len(k) && !bad; i++ {
		b, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		k[i], bad = byte(b), err != nil
	}
	if bad {
		return Key{}, ir.Errorf(ir.ErrAttr, "%q is no key of a group", text)
	}
	return k, nil
}

// KeyOf returns the key of a group on a target.
func KeyOf(g *fusion.Group, caps loop.Caps) Key { return keyOf(fusion.CanonOf(g), caps) }

func keyOf(c *fusion.Canon, caps loop.Caps) (k Key) {
	h := fnv.New128a()
	h.Write([]byte(c.Text))
	var word [8]byte
	for _, n := range capsWords(caps) {
		binary.LittleEndian.PutUint64(word[:], uint64(n))
		h.Write(word[:])
	}
	h.Sum(k[:0])
	return k
}

// capsWords returns all numbers of a target, except its device profile, which only serves
// estimates, and whether it wants drafts, which follow from the schedule.
func capsWords(c loop.Caps) []int {
	flags := 0
	for i, set := range []bool{c.F16, c.Subgroups, c.Mma, c.TF32, c.Shuffles, c.MmaByWarps} {
		if set {
			flags |= 1 << i
		}
	}
	words := []int{
		int(c.Dialect), flags, c.Subgroup[0], c.Subgroup[1], c.MmaBytes, c.Multiprocessors, int(c.Products), c.ProductBytes,
		c.StorageBuffers, c.BindingBytes, c.BufferBytes, c.SharedBytes, c.Invocations,
		c.Workgroup[0], c.Workgroup[1], c.Workgroup[2], c.Groups,
	}
	if c.Fragments {
		words = append(words, 1)
	}
	if c.BFloat {
		words = append(words, 2)
	}
	if c.HalfFragments {
		words = append(words, 3)
	}
	if c.TensorMaps {
		words = append(words, 4)
	}
	if c.AtomicFloats != loop.NoAtomicFloats {
		words = append(words, 4+int(c.AtomicFloats))
	}
	if c.Long > 0 {
		words = append(words, 7, c.Long)
	}
	if c.Collectives {
		words = append(words, 8)
	}
	if c.Factors {
		words = append(words, 9)
	}
	return words
}

// Tuned maps groups to the schedules that tuning found fastest.
type Tuned map[Key]emit.Schedule
