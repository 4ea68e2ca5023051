package async

import (
	"bytes"
	"slices"
	"testing"
)

// Device memory consists of words, so that it may be longer than a tensor of half-precision numbers.
func TestCopyTakesTheLengthOfTheShorter(t *testing.T) {
	words := bytes.Repeat([]byte{7}, 2*minPiece+4)
	for _, n := range []int{6, 2*minPiece + 2} {
		tensor := slices.Clip(make([]byte, n))
		Copy(tensor, words[:n+2])
		if !bytes.Equal(tensor, words[:n]) {
			t.Errorf("%d bytes: not all were copied", n)
		}
		to := make([]byte, n+2)
		if Copy(to, tensor); !bytes.Equal(to[:n], tensor) || to[n] != 0 || to[n+1] != 0 {
			t.Errorf("%d bytes: not all were copied to longer memory", n)
		}
	}
}
