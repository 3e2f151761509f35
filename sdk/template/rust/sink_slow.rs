// Logs each request whose first token came late. In Rust, with the C structures of mekik/plugin.h that it needs written out: their sizes
// and order are the whole contract, and a table only ever grows at its end. No dependency, no panic across the border.
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text { ptr: *const u8, len: usize }
impl Text {
    fn new(s: &str) -> Text { Text { ptr: s.as_ptr(), len: s.len() } }
    unsafe fn get(&self) -> &str {
        if self.len == 0 { return ""; }
        std::str::from_utf8(std::slice::from_raw_parts(self.ptr, self.len)).unwrap_or("?")
    }
}
#[repr(C)]
pub struct Host {
    struct_size: u32, abi_minor: u32, this: *mut c_void, name: *const c_char, version: *const c_char,
    fail: extern "C" fn(*const Host, i32, Text) -> i32,
    service: extern "C" fn(*const Host, *const c_char) -> *const c_void,
}
#[repr(C)]
struct Log { struct_size: u32, reserved: u32, enabled: extern "C" fn(*const Host, i32) -> i32, write: extern "C" fn(*const Host, i32, Text, Text) }
#[repr(C)]
struct ConfigApi { struct_size: u32, reserved: u32, i64: extern "C" fn(*const c_void, *const c_char) -> i64 /* and more, not used here */ }
#[repr(C)]
pub struct Field { key: *const c_char, kind: u32, reserved: u32, number: f64, text: Text }
#[repr(C)]
pub struct Sink {
    struct_size: u32, reserved: u32,
    create: extern "C" fn(*const Host, *const c_void, *mut *mut Slow) -> i32,
    destroy: extern "C" fn(*mut Slow),
    publish: extern "C" fn(*mut Slow, u64, *const c_void, u32, u32),
    event: extern "C" fn(*mut Slow, *const c_char, u64, *const Field, u32, u32),
    scrape: *const c_void,
}
#[repr(C)]
pub struct Opt {
    key: *const c_char, kind: u32, flags: u32, fallback: *const c_char, min: f64, max: f64,
    choices: *const c_char, fields: *const Opt, n_fields: u32, field_size: u32, doc: *const c_char,
}
#[repr(C)]
pub struct Component {
    struct_size: u32, reserved: u32, kind: *const c_char, name: *const c_char, version: *const c_char, summary: *const c_char,
    options: *const Opt, n_options: u32, option_size: u32, table: *const Sink, extension: *const c_void,
}
#[repr(C)]
pub struct Plugin {
    magic: u32, struct_size: u32, abi_minor: u32, reserved: u32,
    id: *const c_char, vendor: *const c_char, version: *const c_char, license: *const c_char, built_for: *const c_char,
    init: extern "C" fn(*const Host, Text) -> i32, deinit: extern "C" fn(), count: extern "C" fn() -> u32,
    component: extern "C" fn(u32) -> *const Component,
}
unsafe impl Sync for Component {}
unsafe impl Sync for Plugin {}
unsafe impl Sync for Opt {}
unsafe impl Sync for Sink {}

macro_rules! c { ($s:expr) => { concat!($s, "\0").as_ptr() as *const c_char } }

static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());
unsafe fn service<T>(id: *const c_char) -> Option<&'static T> {
    let host = HOST.load(Ordering::Acquire);
    (((*host).service)(host, id) as *const T).as_ref()
}

pub struct Slow { after_seconds: f64 }

extern "C" fn create(host: *const Host, config: *const c_void, out: *mut *mut Slow) -> i32 {
    unsafe {
        match service::<ConfigApi>(c!("mekik.config/1")) {
            None => ((*host).fail)(host, 2, Text::new("this host gives no options")), // MEKIK_E_UNSUPPORTED
            Some(api) => {
                let after_seconds = (api.i64)(config, c!("slower_than")) as f64 / 1e9;
                *out = Box::into_raw(Box::new(Slow { after_seconds }));
                0
            }
        }
    }
}
extern "C" fn destroy(this: *mut Slow) { unsafe { drop(Box::from_raw(this)) } }
extern "C" fn publish(_: *mut Slow, _: u64, _: *const c_void, _: u32, _: u32) {}
// [any]: it changes nothing of the instance, so it needs no lock. Fields come with a stride.
extern "C" fn event(this: *mut Slow, _: *const c_char, _: u64, fields: *const Field, n: u32, size: u32) {
    unsafe {
        let (mut id, mut ttft) = ("?", 0.0);
        for i in 0..n as usize {
            let field = &*((fields as *const u8).add(i * size as usize) as *const Field);
            match CStr::from_ptr(field.key).to_bytes() {
                b"id" => id = field.text.get(),
                b"ttft_seconds" => ttft = field.number,
                _ => {}
            }
        }
        if ttft <= (*this).after_seconds { return; }
        if let Some(log) = service::<Log>(c!("mekik.log/1")) {
            (log.write)(HOST.load(Ordering::Acquire), 3, Text::new("slow"), Text::new(&format!("{}: first token after {:.3} s", id, ttft)));
        }
    }
}

static TABLE: Sink = Sink { struct_size: std::mem::size_of::<Sink>() as u32, reserved: 0, create, destroy, publish, event, scrape: std::ptr::null() };
static OPTIONS: [Opt; 1] = [Opt {
    key: c!("slower_than"), kind: 7, flags: 0, fallback: c!("\"1s\""), min: 0.0, max: 86400e9, // kind 7: a duration, in nanoseconds
    choices: std::ptr::null(), fields: std::ptr::null(), n_fields: 0, field_size: 0, doc: c!("Requests whose first token took longer are logged."),
}];
static COMPONENT: Component = Component {
    struct_size: std::mem::size_of::<Component>() as u32, reserved: 0, kind: c!("mekik.sink/1"), name: c!("slow"), version: c!("1.0"),
    summary: c!("Logs each request whose first token came late."),
    options: OPTIONS.as_ptr(), n_options: 1, option_size: std::mem::size_of::<Opt>() as u32, table: &TABLE, extension: std::ptr::null(),
};
extern "C" fn init(host: *const Host, _: Text) -> i32 { HOST.store(host as *mut Host, Ordering::Release); 0 }
extern "C" fn deinit() { HOST.store(std::ptr::null_mut(), Ordering::Release) }
extern "C" fn count() -> u32 { 1 }
extern "C" fn component(i: u32) -> *const Component { if i == 0 { &COMPONENT } else { std::ptr::null() } }

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static mekik_plugin_v0: Plugin = Plugin {
    magic: 0x31504B4D, struct_size: std::mem::size_of::<Plugin>() as u32, abi_minor: 0, reserved: 0,
    id: c!("org.example.slow"), vendor: c!(""), version: c!("1.0"), license: c!("Apache-2.0"), built_for: c!("0.1.0"),
    init, deinit, count, component,
};
