package clike

import "strings"

// KeywordsOfCPP are the keywords of C++, for [Words].
const KeywordsOfCPP = `
	alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
	constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern
	false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
	or_eq private protected public register reinterpret_cast return short signed sizeof static static_assert
	static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
	using virtual void volatile wchar_t while xor xor_eq`

// Words returns the set of the words of lists.
func Words(lists ...string) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		for _, word := range strings.Fields(list) {
			out[word] = true
		}
	}
	return out
}
