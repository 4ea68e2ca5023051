// The part of Foundation that the bindings use, declared anew from Apple's
// documentation: the page of each declaration is its name under
// https://developer.apple.com/documentation/foundation (or objectivec).
#include <stddef.h>
#include <stdint.h>

#define nil ((id)0)
#define YES ((BOOL)1)
#define NO ((BOOL)0)

#ifdef __x86_64__
typedef signed char BOOL; // a bool on Apple's own processors alone
#else
typedef _Bool BOOL;
#endif
typedef unsigned long NSUInteger;
typedef long NSInteger;

@class NSString;

@protocol NSObject
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
@end

__attribute__((objc_root_class)) @interface NSObject <NSObject>
+ (instancetype)alloc;
- (instancetype)init;
@end

@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char *)text;
- (const char *)UTF8String;
@end

@interface NSError : NSObject
- (NSInteger)code;
- (NSString *)localizedDescription;
@end

@interface NSArray : NSObject
+ (instancetype)arrayWithObject:(id)object;
@end

@interface NSURL : NSObject
+ (NSURL *)fileURLWithPath:(NSString *)path;
@end
