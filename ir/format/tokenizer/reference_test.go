package tokenizer_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

// hashes reads testdata/hashes.txt: by kind, a row for each block of strings with hashes of their ids, of
// what these decode to, and of what random ids decode to.
func hashes(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/hashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		kind, row, _ := strings.Cut(strings.TrimSpace(line), " ")
		rows[kind] = append(rows[kind], row)
	}
	return rows
}

func open(t testing.TB, kind string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Open("testdata/" + kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestReference compares with the tokenizers library 0.23.3 of Hugging Face, which suite/make.py asks, on
// 10,000 random strings for each kind of tokenizer.
func TestReference(t *testing.T) {
	for kind, rows := range hashes(t) {
		if strings.HasPrefix(kind, "sp") {
			continue // of SentencePiece
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tok := open(t, kind)
			if len(rows) != stringCount/blockSize {
				t.Fatalf("%d rows of hashes", len(rows))
			}
			for block, want := range rows {
				if got := hashBlock(t, tok, block*blockSize); got != want {
					t.Errorf("strings %d to %d: hashes %s, want %s", block*blockSize, (block+1)*blockSize-1, got, want)
				}
			}
		})
	}
}

// hashBlock returns the row of hashes of the strings from a number on.
func hashBlock(t *testing.T, tok *tokenizer.Tokenizer, first int) string {
	t.Helper()
	encoded, decoded := hashStrings(t, tok, first, tokenizer.EncodeOptions{})
	others := fnv.New32a()
	for i := first; i < first+blockSize; i++ {
		text, err := tok.Decode(randomIDs(i, tok.Size()), tokenizer.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		others.Write(append([]byte(text), 0xff))
	}
	return fmt.Sprintf("%s %s %08x", encoded, decoded, others.Sum32())
}

// hashStrings returns the hashes of the ids of the strings from a number on, and of what these decode to.
func hashStrings(t *testing.T, tok *tokenizer.Tokenizer, first int, o tokenizer.EncodeOptions) (encoded, decoded string) {
	t.Helper()
	ofIDs, ofTexts := fnv.New32a(), fnv.New32a()
	for i := first; i < first+blockSize; i++ {
		ids, err := tok.Encode(randomString(i), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range append(ids, -1) {
			ofIDs.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
		}
		text, err := tok.Decode(ids, tokenizer.DecodeOptions{OmitSpecial: true})
		if err != nil {
			t.Fatal(err)
		}
		ofTexts.Write(append([]byte(text), 0xff))
	}
	return fmt.Sprintf("%08x", ofIDs.Sum32()), fmt.Sprintf("%08x", ofTexts.Sum32())
}
