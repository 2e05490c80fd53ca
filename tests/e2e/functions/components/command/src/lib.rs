//! What WASI 0.3 offers to a command, each by its first argument.

use wasip3::cli::environment::{get_arguments, get_environment};
use wasip3::cli::{stderr, stdin, stdout};
use wasip3::exports::cli::run::Guest;
use wasip3::filesystem::preopens::get_directories;
use wasip3::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasip3::wit_stream;

wasip3::cli::command::export!(Command);

struct Command;

impl Guest for Command {
    async fn run() -> Result<(), ()> {
        match get_arguments().get(1).map(String::as_str) {
            Some("copy") => copy().await,
            Some("pass") => pass().await,
            Some("environment") => print(&environment()).await,
            Some("files") => match files().await {
                Ok(text) => print(&text).await,
                Err(code) => print(&format!("{code:?}")).await,
            },
            _ => Err(()),
        }
    }
}

/// Writes to standard output.
async fn print(text: &str) -> Result<(), ()> {
    let (mut writer, reader) = wit_stream::new();
    let written = stdout::write_via_stream(reader);
    let left = writer.write_all(text.as_bytes().to_vec()).await;
    drop(writer);
    written.await.map_err(|_| ())?;
    if left.is_empty() { Ok(()) } else { Err(()) }
}

/// Copies standard input to standard output, and says to standard error how much it was.
async fn copy() -> Result<(), ()> {
    let (input, read) = stdin::read_via_stream();
    let bytes = input.collect().await;
    read.await.map_err(|_| ())?;
    let (mut writer, reader) = wit_stream::new();
    let said = stderr::write_via_stream(reader);
    assert!(writer.write_all(format!("{} bytes\n", bytes.len()).into_bytes()).await.is_empty());
    drop(writer);
    said.await.map_err(|_| ())?;
    let (mut writer, reader) = wit_stream::new();
    let (left, written) = futures::join!(
        async move { writer.write_all(bytes).await },
        async move { stdout::write_via_stream(reader).await },
    );
    written.map_err(|_| ())?;
    if left.is_empty() { Ok(()) } else { Err(()) }
}

/// Gives standard input to standard output.
async fn pass() -> Result<(), ()> {
    let (input, _read) = stdin::read_via_stream();
    stdout::write_via_stream(input).await.map_err(|_| ())
}

fn environment() -> String {
    let mut variables = get_environment();
    variables.sort();
    format!("{:?} {variables:?}", &get_arguments()[1..])
}

/// Everything that can be done with files, a line each.
async fn files() -> Result<String, ErrorCode> {
    let directories = get_directories();
    let (root, _) = directories.first().ok_or(ErrorCode::NoEntry)?;
    let mut lines = Vec::new();
    root.create_directory_at("sub".to_owned()).await?;
    let create = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let both = DescriptorFlags::READ | DescriptorFlags::WRITE;
    let file = root.open_at(PathFlags::empty(), "sub/file".to_owned(), create, both).await?;
    write(&file, b"one two three", 0).await?;
    write(&file, b"TWO", 4).await?;
    let (mut writer, reader) = wit_stream::new();
    let appended = file.append_via_stream(reader);
    assert!(writer.write_all(b" four".to_vec()).await.is_empty());
    drop(writer);
    appended.await?;
    lines.push(read(&file, 4).await?);
    file.set_size(7).await?;
    file.sync().await?;
    let stat = file.stat().await?;
    lines.push(format!("{} {:?}", stat.size, stat.type_));
    let seconds = 1_000_000_000;
    let time = wasip3::clocks::system_clock::Instant { seconds, nanoseconds: 5 };
    file.set_times(NewTimestamp::NoChange, NewTimestamp::Timestamp(time)).await?;
    let changed = root.stat_at(PathFlags::empty(), "sub/file".to_owned()).await?.data_modification_timestamp;
    lines.push(format!("{:?}", changed.map(|time| (time.seconds, time.nanoseconds))));
    let again = root.open_at(PathFlags::empty(), "sub/file".to_owned(), create, both).await;
    lines.push(format!("{:?}", again.err()));
    let none = root.open_at(PathFlags::empty(), "none".to_owned(), OpenFlags::empty(), DescriptorFlags::READ).await;
    let outside = root.open_at(PathFlags::empty(), "../outside".to_owned(), OpenFlags::empty(), DescriptorFlags::READ).await;
    lines.push(format!("{:?} {:?}", none.err(), outside.err()));
    for number in 0..300 {
        root.open_at(PathFlags::empty(), format!("sub/{number:03}"), create, both).await?;
    }
    root.rename_at("sub/000".to_owned(), root, "sub/renamed".to_owned()).await?;
    root.symlink_at("file".to_owned(), "sub/link".to_owned()).await?;
    root.link_at(PathFlags::empty(), "sub/file".to_owned(), root, "sub/hard".to_owned()).await?;
    lines.push(root.readlink_at("sub/link".to_owned()).await?);
    let sub = root.open_at(PathFlags::empty(), "sub".to_owned(), OpenFlags::DIRECTORY, DescriptorFlags::READ).await?;
    let (entries, listed) = sub.read_directory();
    let mut entries = entries.collect().await;
    listed.await?;
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    let links = entries.iter().filter(|entry| matches!(entry.type_, DescriptorType::SymbolicLink)).count();
    let last = entries.last().map(|entry| entry.name.clone()).unwrap_or_default();
    lines.push(format!("{} {links} {last}", entries.len()));
    let (not_a_folder, listed) = file.read_directory();
    lines.push(format!("{} {:?}", not_a_folder.collect().await.len(), listed.await.err()));
    for entry in entries {
        sub.unlink_file_at(entry.name).await?;
    }
    lines.push(format!("{:?}", root.unlink_file_at("sub".to_owned()).await.err()));
    root.remove_directory_at("sub".to_owned()).await?;
    lines.push(format!("{} {}", root.is_same_object(root).await, root.is_same_object(&sub).await));
    Ok(lines.join("\n"))
}

async fn write(file: &Descriptor, bytes: &[u8], offset: u64) -> Result<(), ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let written = file.write_via_stream(reader, offset);
    assert!(writer.write_all(bytes.to_vec()).await.is_empty());
    drop(writer);
    written.await
}

async fn read(file: &Descriptor, offset: u64) -> Result<String, ErrorCode> {
    let (contents, done) = file.read_via_stream(offset);
    let bytes = contents.collect().await;
    done.await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
