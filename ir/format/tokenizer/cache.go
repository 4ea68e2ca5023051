package tokenizer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
)

// Bounds of the cache: words of more bytes are rare, and long runs of them would fill memory.
const (
	cacheSlots   = 1 << 14
	cacheMaxWord = 64
)

// cache keeps the ids of words. A word has one slot, which the last word with the same hash takes: its
// memory is bounded and no reader waits.
type cache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cachedWord]
}

type cachedWord struct {
	word string
	ids  []int32
}

func newCache() *cache {
	return &cache{maphash.MakeSeed(), make([]atomic.Pointer[cachedWord], cacheSlots)}
}

func (c *cache) slot(word string) *atomic.Pointer[cachedWord] {
	return &c.slots[maphash.String(c.seed, word)%cacheSlots]
}

func (c *cache) get(word string) ([]int32, bool) {
	if len(word) > cacheMaxWord {
		return nil, false
	}
	if e := c.slot(word).Load(); e != nil && e.word == word {
		return e.ids, true
	}
	return nil, false
}

func (c *cache) put(word string, ids []int32) {
	if len(word) <= cacheMaxWord {
		c.slot(word).Store(&cachedWord{strings.Clone(word), slices.Clone(ids)})
	}
}
