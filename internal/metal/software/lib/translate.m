// From MSL to C++ with bounds.
#import "library.h"

#include <stdio.h>

// Values of a kernel's thread by the attribute of the parameter that wants them.
static const struct {
	const char *attribute, *value;
} thread_values[] = {
	{"thread_position_in_threadgroup", "sw_three(t->local)"},
	{"threadgroup_position_in_grid", "sw_three(t->group)"},
	{"thread_index_in_threadgroup", "t->index"},
	{"thread_index_in_simdgroup", "t->lane"},
	{"simdgroup_index_in_threadgroup", "t->index / sw_simd"},
};

static NSString *trim(NSString *s) { return [s stringByTrimmingCharactersInSet:[NSCharacterSet whitespaceAndNewlineCharacterSet]]; }

static NSString *without(NSString *s, NSString *words) { return trim([s stringByReplacingOccurrencesOfString:words withString:@""]); }

// parameter adds one parameter of a kernel and its argument; NO if Metal would refuse it.
static BOOL parameter(SWLibrary *lib, NSString *text, NSMutableArray *declared, NSMutableArray *passed) {
	NSRange at = [text rangeOfString:@"[["];
	if (at.location == NSNotFound) return NO;
	NSString *declaration = trim([text substringToIndex:at.location]);
	NSString *attribute = without([text substringFromIndex:at.location + 2], @"]]");
	for (size_t i = 0; i < sizeof thread_values / sizeof *thread_values; i++)
		if ([attribute isEqualToString:[NSString stringWithUTF8String:thread_values[i].attribute]]) {
			[declared addObject:declaration];
			[passed addObject:[NSString stringWithUTF8String:thread_values[i].value]];
			return YES;
		}
	int index = 0;
	BOOL isConstant = [declaration hasPrefix:@"constant "];
	if (sscanf([attribute UTF8String], "buffer(%d)", &index) != 1 || index >= sw_table || !(isConstant || [declaration hasPrefix:@"device "])) return NO;
	if (lib->buffers < index + 1u) lib->buffers = index + 1;
	NSRange star = [declaration rangeOfCharacterFromSet:[NSCharacterSet characterSetWithCharactersInString:@"*&"]];
	if (star.location == NSNotFound) return NO;
	NSString *type = without(without([declaration substringToIndex:star.location], @"device "), @"constant ");
	NSString *name = [declaration substringFromIndex:star.location + 1];
	if ([declaration characterAtIndex:star.location] == '&') {
		[declared addObject:[NSString stringWithFormat:@"const %@ &%@", type, name]];
		[passed addObject:[NSString stringWithFormat:@"sw_whole<%@>(table[%d])", type, index]];
		return YES;
	}
	[declared addObject:[NSString stringWithFormat:@"const sw_buffer<%s%@> %@", isConstant ? "const " : "", type, name]];
	[passed addObject:[NSString stringWithFormat:@"table[%d]", index]];
	return YES;
}

BOOL sw_translate(SWLibrary *lib) {
	NSRange head = [lib->source rangeOfString:@"kernel void "];
	if (head.location == NSNotFound) return NO;
	NSUInteger start = NSMaxRange(head);
	NSRange rest = NSMakeRange(start, [lib->source length] - start);
	NSRange open = [lib->source rangeOfString:@"(" options:0 range:rest], close = [lib->source rangeOfString:@") {" options:0 range:rest];
	if (open.location == NSNotFound || close.location == NSNotFound) return NO;
	lib->name = [[lib->source substringWithRange:NSMakeRange(start, open.location - start)] retain];
	NSMutableArray *declared = [NSMutableArray array], *passed = [NSMutableArray array];
	NSString *list = [lib->source substringWithRange:NSMakeRange(open.location + 1, close.location - open.location - 1)];
	for (NSString *text in [list componentsSeparatedByString:@","])
		if (!parameter(lib, text, declared, passed)) return NO;
	NSMutableString *body = [NSMutableString stringWithString:[lib->source substringFromIndex:close.location]];
	// An array of a threadgroup is a static one, whose pointers have no such word.
	[body replaceOccurrencesOfString:@"threadgroup bfloat *" withString:@"bfloat *" options:0 range:NSMakeRange(0, [body length])];
	lib->code = [[NSString stringWithFormat:@"namespace sw_%d {\n#line 1 \"%@\"\n%@(%@%@\nextern \"C\" void sw_call_%d(const sw_argument *table, const sw_thread *t) { %@(%@); }\n}\n",
	                                        lib->number, lib->name, [lib->source substringToIndex:open.location], [declared componentsJoinedByString:@",\n"],
	                                        body, lib->number, lib->name, [passed componentsJoinedByString:@", "]] retain];
	return YES;
}
