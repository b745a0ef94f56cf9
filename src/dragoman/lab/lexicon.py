"""The words of the laboratory: a small German-English lexicon, written by hand, as tables that are read at need.

Each topic has a table of its own, and `GENERAL` holds the words of every topic.  One entry stands on a line: flags,
kind, German columns, `=`, English columns.  Columns are separated by blanks, the words of one expression by `_`, and
synonyms by `/` (the most usual one first; all columns of one side have the same number of them).  `#` starts a
comment.  Within a kind the earlier entries are the more useful ones.

- flags: `formal` or `casual` (used in that register only), `rare` (hardly ever used), `sein` (a verb whose perfect
  takes sein);
- nouns: `man`, `woman`, `beast` or `thing`, the German gender m, f or n, singular, plural and, for weak nouns, the
  singular of the other cases = English singular and plural;
- verbs: the frame (`person>thing` says who does it to what), third person singular, third person plural, participle
  = English third person singular, base, participle.  A `+` parts the particle of a separable verb from the rest,
  and all synonyms have the same one;
- `crossed`: two verbs, two subjects and two objects of the same table.  The first subject prefers the first object
  with the first verb and the second with the second; the second subject has it the other way about;
- phrases: `place`, `time`, `adjective`, `conjunction`, `number`: German = English.

Four properties are held by the tests because the grammar needs them.  No form is shared between topics or kinds, so
that the words tell the topic.  Number can be seen on every English noun, and the participle of every verb differs
from its other forms, so that a sentence tells its tense.  No English noun or adjective begins with u or a mute h,
so that its first letter tells whether it takes a or an.  No word looks like the made-up names: two or three
syllables of one consonant and one vowel, the last of which ends in a, i, o or u.  Words of phrases that are always
written with a capital have one here; German nouns get theirs in raw text anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

TOPICS: Final[dict[str, str]] = {
    "farm": """
man m bauer bauern bauern = farmer farmers
man m händler händler = merchant/dealer merchants/dealers
man m knecht knechte = farmhand farmhands
man m schäfer/hirte schäfer/hirten schäfer/hirten = shepherd shepherds
formal man m gutsherr gutsherren gutsherrn = squire squires
casual man m kerl kerle = bloke blokes
rare man m imker imker = beekeeper beekeepers
woman f bäuerin bäuerinnen = countrywoman countrywomen
woman f magd mägde = milkmaid/dairymaid milkmaids/dairymaids
woman f tante tanten = aunt aunts
formal woman f gutsherrin gutsherrinnen = mistress mistresses
casual woman f göre gören = brat brats
rare woman f hirtin hirtinnen = shepherdess shepherdesses
beast f kuh kühe = cow cows
beast n schwein schweine = pig/hog pigs/hogs
beast n huhn hühner = hen/chicken hens/chickens
beast f ziege/geiß ziegen/geißen = goat goats
formal beast n ross rosse = steed steeds
casual beast m gaul gäule = nag nags
rare beast m esel esel = donkey donkeys
rare beast f gans gänse = goose geese
rare beast n fohlen fohlen = foal foals
thing m pflug pflüge = plough ploughs
thing m sack säcke = sack sacks
thing f feder federn = feather feathers  # one German noun for two English ones
thing f feder federn = spring springs
thing n werkzeug werkzeuge = tool/implement tools/implements
thing n feld felder = field fields
thing f scheune scheunen = barn barns
thing m eimer/kübel eimer/kübel = bucket/pail buckets/pails
thing m zaun zäune = fence fences
thing f schubkarre schubkarren = wheelbarrow wheelbarrows
thing n ei eier = egg eggs
thing m hühnerstall hühnerställe = hen_coop hen_coops
thing f wiese wiesen = meadow meadows
thing m heuwagen heuwagen = hay_cart hay_carts
formal thing n landgut landgüter = estate estates
casual thing n kaff kaffs = backwater backwaters
formal thing n gebäude gebäude = edifice edifices
casual thing m schuppen schuppen = shed sheds
rare thing f sense sensen = scythe scythes
rare thing n hufeisen hufeisen = horseshoe horseshoes
rare thing f heugabel heugabeln = hay_fork hay_forks
rare thing m bienenkorb bienenkörbe = beehive beehives
person arbeitet arbeiten gearbeitet = works/toils work/toil worked/toiled
person schwitzt schwitzen geschwitzt = sweats sweat sweated
sein person auf+steht auf+stehen auf+gestanden = gets_up get_up got_up
formal person schlummert schlummern geschlummert = slumbers slumber slumbered
casual person pennt pennen gepennt = snoozes snooze snoozed
beast grast/weidet grasen/weiden gegrast/geweidet = grazes graze grazed
beast grunzt grunzen gegrunzt = grunts grunt grunted
sein beast weg+läuft weg+laufen weg+gelaufen = strays stray strayed
rare beast gackert gackern gegackert = cackles cackle cackled
person>thing zieht ziehen gezogen = pulls/tugs pull/tug pulled/tugged
person>thing auf+hebt auf+heben auf+gehoben = picks_up pick_up picked_up
person>thing schleppt schleppen geschleppt = drags/hauls drag/haul dragged/hauled
person>thing weg+räumt weg+räumen weg+geräumt = clears_away clear_away cleared_away
person>thing aus+gräbt aus+graben aus+gegraben = digs_up dig_up dug_up
person>thing zählt zählen gezählt = counts count counted
formal person>thing erwirbt erwerben erworben = acquires acquire acquired
casual person>thing schnappt schnappen geschnappt = grabs grab grabbed
rare person>thing drischt dreschen gedroschen = threshes thresh threshed
person>beast füttert füttern gefüttert = feeds feed fed
person>beast striegelt striegeln gestriegelt = grooms groom groomed
formal person>beast hegt hegen gehegt = nurtures nurture nurtured
casual person>beast knuddelt knuddeln geknuddelt = snuggles snuggle snuggled
person>person lobt/preist loben/preisen gelobt/gepriesen = praises praise praised
person>person aus+schimpft aus+schimpfen aus+geschimpft = scolds/chides scold/chide scolded/chided
formal person>person dingt dingen gedungen = engages engage engaged
casual person>person triezt triezen getriezt = needles needle needled
beast>thing frisst fressen gefressen = eats/devours eat/devour eaten/devoured
beast>thing leckt lecken geleckt = licks lick licked
beast>beast jagt jagen gejagt = chases chase chased
person>self wäscht waschen gewaschen = washes wash washed
person>self kratzt kratzen gekratzt = scratches scratch scratched
person~ aus+ruht aus+ruhen aus+geruht = rests rest rested
person~ freut freuen gefreut = rejoices rejoice rejoiced
formal person~ sputet sputen gesputet = hastens hasten hastened
casual person~ tummelt tummeln getummelt = hustles hustle hustled
quad kauft kaufen gekauft = buys buy bought
quad liefert liefern geliefert = delivers deliver delivered
crossed kaufen liefern bauer händler pflug sack
place auf_dem_Hof = on_the_farm
place im_Stall = in_the_stable
place am_Bach = at_the_brook/at_the_stream
place im_Dorf = in_the_village
place hinter_dem_Hügel = behind_the_hill
place vor_der_Mühle = in_front_of_the_mill
""",
    "kitchen": """
man m koch köche = chef chefs
man m kellner kellner = waiter waiters
man m gast gäste = guest/visitor guests/visitors
man m bruder brüder = brother brothers
formal man m gastgeber gastgeber = host hosts
casual man m kumpel kumpels = buddy/pal buddies/pals
rare man m konditor konditoren = confectioner confectioners
woman f mutter mütter = mother mothers
woman f schwester schwestern = sister sisters
woman f kellnerin/bedienung kellnerinnen/bedienungen = waitress waitresses
formal woman f gastgeberin gastgeberinnen = hostess hostesses
casual woman f oma omas = grandma/granny grandmas/grannies
rare woman f küchenhilfe küchenhilfen = scullion scullions
beast f maus mäuse = mouse mice
beast m kater kater = tomcat tomcats
beast f wespe wespen = wasp wasps
beast f ameise ameisen = ant ants
formal beast n haustier haustiere = domestic_animal domestic_animals
casual beast f mieze miezen = kitty/pussycat kitties/pussycats
rare beast f kakerlake/schabe kakerlaken/schaben = cockroach cockroaches
rare beast m papagei papageien papageien = parrot parrots
rare beast f motte motten = moth moths
thing m topf töpfe = pot pots
thing m becher becher = beaker beakers
thing f birne birnen = pear pears  # one German noun for two English ones
thing f birne birnen = bulb bulbs
thing n messer messer = knife knives
thing m teller teller = plate plates
thing n glas gläser = glass glasses
thing f pfanne pfannen = frying_pan/skillet frying_pans/skillets
thing m küchentisch küchentische = kitchen_table kitchen_tables
thing n brot brote = loaf loaves
thing f schüssel/schale schüsseln/schalen = bowl bowls
thing m löffel löffel = spoon spoons
thing f suppe/brühe suppen/brühen = soup/broth soups/broths
thing n teesieb teesiebe = tea_strainer tea_strainers
formal thing n festmahl festmahle = banquet banquets
casual thing m imbiss imbisse = snack snacks
formal thing n gefäß gefäße = vessel vessels
casual thing n ding dinger = thingy thingies
rare thing m mörser mörser = mortar mortars
rare thing m schneebesen schneebesen = whisk whisks
rare thing f zitrone zitronen = lemon lemons
rare thing n nudelholz nudelhölzer = rolling_pin rolling_pins
person kichert kichern gekichert = giggles giggle giggled
person singt singen gesungen = sings sing sung
sein person ein+schläft ein+schlafen ein+geschlafen = falls_asleep/nods_off fall_asleep/nod_off fallen_asleep/nodded_off
formal person speist speisen gespeist = feasts feast feasted
casual person mampft mampfen gemampft = munches munch munched
beast summt/brummt summen/brummen gesummt/gebrummt = buzzes/hums buzz/hum buzzed/hummed
beast piepst piepsen gepiepst = squeaks squeak squeaked
sein beast krabbelt krabbeln gekrabbelt = crawls crawl crawled
person>thing braucht brauchen gebraucht = needs/requires need/require needed/required
person>thing auf+macht auf+machen auf+gemacht = opens open opened
person>thing zu+macht zu+machen zu+gemacht = closes close closed
person>thing ab+trocknet ab+trocknen ab+getrocknet = dries dry dried
person>thing schält schälen geschält = peels peel peeled
person>thing kostet kosten gekostet = tastes taste tasted
formal person>thing genießt genießen genossen = savours savour savoured
casual person>thing futtert futtern gefuttert = scoffs scoff scoffed
rare person>thing knetet kneten geknetet = kneads knead kneaded
rare person>thing würzt würzen gewürzt = seasons season seasoned
person>beast fängt fangen gefangen = catches catch caught
person>beast scheucht scheuchen gescheucht = shoos shoo shooed
person>person küsst küssen geküsst = kisses kiss kissed
person>person ein+lädt ein+laden ein+geladen = invites invite invited
formal person>person ehrt ehren geehrt = honours honour honoured
casual person>person drückt drücken gedrückt = hugs/cuddles hug/cuddle hugged/cuddled
beast>thing knabbert knabbern geknabbert = nibbles nibble nibbled
beast>thing riecht/wittert riechen/wittern gerochen/gewittert = smells smell smelt
formal beast>thing verschlingt verschlingen verschlungen = consumes consume consumed
casual beast>thing schlabbert schlabbern geschlabbert = slurps slurp slurped
beast>beast beißt beißen gebissen = nips nip nipped
person>self verbrennt verbrennen verbrannt = burns/scorches burn/scorch burnt/scorched
person>self wiegt wiegen gewogen = weighs weigh weighed
person~ hin+setzt hin+setzen hin+gesetzt = sits_down sit_down sat_down
person~ ärgert ärgern geärgert = frets/sulks fret/sulk fretted/sulked
formal person~ labt laben gelabt = revels revel revelled
casual person~ voll+stopft voll+stopfen voll+gestopft = gorges gorge gorged
quad füllt füllen gefüllt = fills fill filled
quad spült spülen gespült = rinses rinse rinsed
crossed füllen spülen koch kellner topf becher
place in_der_Küche = in_the_kitchen
place am_Herd = at_the_stove/at_the_cooker
place auf_dem_Balkon = on_the_balcony
place im_Keller = in_the_cellar
place hinter_der_Theke = behind_the_counter
place vor_dem_Kamin = in_front_of_the_fireplace
""",
    "sea": """
man m fischer fischer = fisherman fishermen
man m matrose/seemann matrosen/seemänner matrosen/seemann = sailor/seaman sailors/seamen
man m kapitän kapitäne = captain/skipper captains/skippers
man m taucher taucher = diver divers
formal man m admiral admirale = admiral admirals
casual man m seebär seebären seebären = swab swabs
rare man m lotse lotsen lotsen = pilot pilots
woman f fischerin fischerinnen = fisherwoman fisherwomen
woman f schwimmerin schwimmerinnen = swimmer swimmers
woman f seglerin seglerinnen = yachtswoman yachtswomen
formal woman f reederin reederinnen = shipowner shipowners
casual woman f deern deerns = lass lasses
rare woman f nixe/meerjungfrau nixen/meerjungfrauen = mermaid mermaids
beast f möwe möwen = gull/seagull gulls/seagulls
beast m wal wale = whale whales
beast f robbe robben = seal seals
beast m delfin/tümmler delfine/tümmler = dolphin dolphins
beast m hai haie = shark sharks
rare beast f schildkröte schildkröten = turtle turtles
rare beast m pelikan pelikane = pelican pelicans
rare beast m hummer hummer = lobster lobsters
thing n netz netze = net nets
thing n segel segel = sail sails
thing n ruder ruder = oar oars  # one German noun for two English ones
thing n ruder ruder = rudder rudders
thing n boot boote = boat boats
thing m anker anker = anchor anchors
thing f insel inseln = island/isle islands/isles
thing m hafen häfen = harbour/port harbours/ports
thing f muschel muscheln = shell/seashell shells/seashells
thing m mast masten = mast masts
thing f flagge/fahne flaggen/fahnen = flag flags
thing f welle/woge wellen/wogen = wave/billow waves/billows
thing m fischkutter fischkutter = fishing_boat fishing_boats
thing f schatzkarte schatzkarten = treasure_map treasure_maps
formal thing f yacht yachten = yacht yachts
casual thing m pott pötte = tub tubs
formal thing f fregatte fregatten = frigate frigates
casual thing f nussschale nussschalen = cockleshell cockleshells
formal thing m ozean ozeane = ocean oceans
casual thing m tümpel tümpel = puddle puddles
rare thing f harpune harpunen = harpoon harpoons
rare thing n fernrohr fernrohre = telescope/spyglass telescopes/spyglasses
rare thing f boje bojen = buoy buoys
rare thing f hängematte hängematten = hammock hammocks
sein person schwimmt schwimmen geschwommen = swims swim swum
person träumt träumen geträumt = dreams dream dreamt
person friert/zittert frieren/zittern gefroren/gezittert = shivers shiver shivered
formal person wacht wachen gewacht = watches watch watched
casual person gammelt gammeln gegammelt = idles idle idled
rare sein person kentert kentern gekentert = capsizes capsize capsized
beast kreischt kreischen gekreischt = screeches/shrieks screech/shriek screeched/shrieked
beast zappelt zappeln gezappelt = wriggles wriggle wriggled
sein beast auf+taucht auf+tauchen auf+getaucht = surfaces surface surfaced
person>thing sieht/sichtet sehen/sichten gesehen/gesichtet = sees see seen
person>thing wirft/schleudert werfen/schleudern geworfen/geschleudert = throws/hurls throw/hurl thrown/hurled
person>thing fest+bindet fest+binden fest+gebunden = fastens/secures fasten/secure fastened/secured
person>thing los+lässt los+lassen los+gelassen = releases release released
person>thing an+streicht an+streichen an+gestrichen = coats coat coated
person>thing lenkt/steuert lenken/steuern gelenkt/gesteuert = steers steer steered
formal person>thing birgt bergen geborgen = salvages salvage salvaged
casual person>thing raus+fischt raus+fischen raus+gefischt = fishes_out fish_out fished_out
rare person>thing teert teeren geteert = tars tar tarred
person>beast ködert ködern geködert = baits bait baited
person>beast streichelt streicheln gestreichelt = strokes stroke stroked
person>person warnt warnen gewarnt = warns warn warned
person>person ab+löst ab+lösen ab+gelöst = relieves relieve relieved
formal person>person an+klagt an+klagen an+geklagt = accuses accuse accused
casual person>person an+brüllt an+brüllen an+gebrüllt = bawls_out bawl_out bawled_out
beast>thing rammt rammen gerammt = rams ram rammed
beast>thing streift streifen gestreift = brushes brush brushed
beast>beast schluckt schlucken geschluckt = swallows/gulps swallow/gulp swallowed/gulped
person>self rettet retten gerettet = rescues rescue rescued
person>self schützt schützen geschützt = protects protect protected
formal person>self rühmt rühmen gerühmt = extols extol extolled
casual person>self knipst knipsen geknipst = snaps snap snapped
person~ fest+hält fest+halten fest+gehalten = holds_on hold_on held_on
person~ sonnt sonnen gesonnt = sunbathes sunbathe sunbathed
formal person~ ein+schifft ein+schiffen ein+geschifft = embarks embark embarked
casual person~ aalt aalen geaalt = lounges lounge lounged
quad flickt flicken geflickt = mends mend mended
quad hisst hissen gehisst = hoists hoist hoisted
crossed flicken hissen fischer matrose netz segel
place am_Strand = on_the_beach
place auf_See = at_sea
place an_Deck = on_deck
place auf_dem_Steg = on_the_jetty
place hinter_dem_Riff = behind_the_reef
place vor_der_Klippe = in_front_of_the_cliff
""",
    "school": """
man m lehrer lehrer = teacher/schoolmaster teachers/schoolmasters
man m schüler schüler = pupil pupils
man m knabe knaben knaben = boy/lad boys/lads
man m student studenten studenten = student students
formal man m rektor rektoren = headmaster headmasters
casual man m streber streber = swot swots
rare man m hausmeister/pedell hausmeister/pedelle = caretaker/janitor caretakers/janitors
woman n mädchen mädchen = girl girls
woman f lehrerin lehrerinnen = schoolmistress schoolmistresses
woman f schülerin schülerinnen = schoolgirl schoolgirls
formal woman f rektorin rektorinnen = headmistress headmistresses
casual woman f petze petzen = telltale telltales
rare woman f gouvernante gouvernanten = governess governesses
beast m hamster hamster = hamster hamsters
beast n kaninchen kaninchen = rabbit/bunny rabbits/bunnies
beast f spinne spinnen = spider spiders
beast m frosch frösche = frog frogs
beast m käfer käfer = beetle beetles
rare beast m igel igel = hedgehog hedgehogs
rare beast f eule eulen = owl owls
rare beast f grille grillen = cricket crickets
thing m test tests = test tests
thing m aufsatz aufsätze = essay essays
thing n buch bücher = book books
thing n blatt blätter = sheet sheets  # one German noun for two English ones
thing n blatt blätter = leaf leaves
thing m brief briefe = letter letters  # one English noun for two German ones
thing m buchstabe buchstaben buchstaben = letter letters
thing f tafel tafeln = blackboard/board blackboards/boards
thing m bleistift bleistifte = pencil pencils
thing n heft hefte = exercise_book exercise_books
thing f aufgabe/übung aufgaben/übungen = task/exercise tasks/exercises
thing f geschichte/erzählung geschichten/erzählungen = story stories
thing m stuhl stühle = chair chairs
thing f schultasche schultaschen = school_bag/satchel school_bags/satchels
thing n wörterbuch wörterbücher = dictionary dictionaries
formal thing f abhandlung abhandlungen = treatise treatises
casual thing m schmöker schmöker = potboiler potboilers
formal thing n lehrbuch lehrbücher = textbook textbooks
casual thing m spickzettel spickzettel = crib_sheet crib_sheets
formal thing n gymnasium gymnasien = academy academies
casual thing m kasten kästen = dump dumps
rare thing m globus globen = globe globes
rare thing n lineal lineale = ruler rulers
rare thing f geige/violine geigen/violinen = violin/fiddle violins/fiddles
rare thing m radiergummi radiergummis = eraser/rubber erasers/rubbers
person lernt lernen gelernt = learns learn learnt
person lächelt/grinst lächeln/grinsen gelächelt/gegrinst = smiles/grins smile/grin smiled/grinned
sein person los+rennt los+rennen los+gerannt = dashes_off dash_off dashed_off
formal person schweigt schweigen geschwiegen = keeps_silent keep_silent kept_silent
casual person quatscht quatschen gequatscht = chatters chatter chattered
rare person schwänzt schwänzen geschwänzt = skives skive skived
sein beast hüpft/springt hüpfen/springen gehüpft/gesprungen = hops/leaps hop/leap hopped/leapt
beast quakt quaken gequakt = croaks croak croaked
beast zirpt zirpen gezirpt = chirps chirp chirped
person>thing zeigt zeigen gezeigt = shows show shown
person>thing aus+leiht aus+leihen aus+geliehen = borrows borrow borrowed
person>thing malt malen gemalt = paints/depicts paint/depict painted/depicted
person>thing ein+steckt ein+stecken ein+gesteckt = pockets pocket pocketed
person>thing aus+teilt aus+teilen aus+geteilt = hands_out/distributes hand_out/distribute handed_out/distributed
person>thing zerreißt zerreißen zerrissen = tears_up tear_up torn_up
formal person>thing beschreibt beschreiben beschrieben = describes describe described
casual person>thing kritzelt kritzeln gekritzelt = scribbles/scrawls scribble/scrawl scribbled/scrawled
formal person>thing erfindet erfinden erfunden = invents/contrives invent/contrive invented/contrived
casual person>thing bastelt basteln gebastelt = cobbles_together cobble_together cobbled_together
rare person>thing unterstreicht unterstreichen unterstrichen = underlines underline underlined
person>beast kitzelt kitzeln gekitzelt = tickles tickle tickled
person>beast züchtet züchten gezüchtet = breeds/rears breed/rear bred/reared
person>person fragt fragen gefragt = asks/questions ask/question asked/questioned
person>person aus+lacht aus+lachen aus+gelacht = mocks/ridicules mock/ridicule mocked/ridiculed
formal person>person tadelt/rügt tadeln/rügen getadelt/gerügt = reprimands reprimand reprimanded
casual person>person piesackt piesacken gepiesackt = pesters pester pestered
beast>thing um+stößt um+stoßen um+gestoßen = knocks_over knock_over knocked_over
beast>thing scheut scheuen gescheut = shuns shun shunned
beast>beast meidet meiden gemieden = avoids avoid avoided
person>self zeichnet zeichnen gezeichnet = draws/sketches draw/sketch drawn/sketched
person>self hasst hassen gehasst = hates/loathes hate/loathe hated/loathed
person~ schämt schämen geschämt = blushes blush blushed
person~ an+strengt an+strengen an+gestrengt = strives strive striven
formal person~ empfiehlt empfehlen empfohlen = departs depart departed
casual person~ trollt trollen getrollt = scarpers scarper scarpered
quad schreibt schreiben geschrieben = writes write written
quad prüft prüfen geprüft = checks check checked
crossed schreiben prüfen lehrer schüler test aufsatz
place in_der_Schule = at_school
place im_Unterricht = in_class
place auf_dem_Flur = in_the_corridor/in_the_hallway
place in_der_Bibliothek = in_the_library
place hinter_der_Turnhalle = behind_the_gym
place vor_dem_Lehrerzimmer = in_front_of_the_staff_room
""",
    "town": """
man m architekt architekten architekten = architect architects
man m kaufmann kaufleute = trader/businessman traders/businessmen
man m nachbar nachbarn nachbarn = neighbour neighbours
man m bäcker bäcker = baker bakers
formal man m herr herren herrn = gentleman gentlemen
casual man m typ typen = guy/chap guys/chaps
formal man m wachtmeister wachtmeister = constable constables
casual man m bulle bullen bullen = cop cops
rare man m schornsteinfeger/kaminkehrer schornsteinfeger/kaminkehrer = chimney_sweep chimney_sweeps
woman f frau frauen = woman women
woman f verkäuferin verkäuferinnen = saleswoman/shopgirl saleswomen/shopgirls
woman f künstlerin künstlerinnen = artist artists
formal woman f gattin/gemahlin gattinnen/gemahlinnen = spouse/wife spouses/wives
casual woman f freundin freundinnen = girlfriend girlfriends
rare woman f wahrsagerin wahrsagerinnen = fortune_teller fortune_tellers
beast m hund hunde = dog dogs
beast f katze katzen = cat cats
beast f taube tauben = pigeon pigeons
beast m spatz/sperling spatzen/sperlinge spatzen/sperling = sparrow sparrows
formal beast m vierbeiner vierbeiner = quadruped quadrupeds
casual beast m köter köter = mutt mutts
rare beast f fledermaus fledermäuse = bat bats
rare beast m marder marder = marten martens
rare beast f ratte ratten = rat rats
thing n haus häuser = house houses
thing n büro büros = office offices
thing f bank banken = bank banks  # one German noun for two English ones
thing f bank bänke = bench benches
thing f brücke brücken = bridge bridges
thing m verein vereine = club clubs  # one English noun for two German ones
thing m knüppel knüppel = club clubs
thing f straße/gasse straßen/gassen = street/road streets/roads
thing n geschäft geschäfte = shop/store shops/stores
thing m bus busse = bus buses
thing f zeitung zeitungen = newspaper/paper newspapers/papers
thing m bahnhof bahnhöfe = railway_station railway_stations
thing n fahrrad fahrräder = bicycle bicycles
thing f ampel ampeln = traffic_light traffic_lights
thing m turm türme = tower towers
formal thing n automobil automobile = automobile automobiles
casual thing f kiste kisten = banger bangers
formal thing f residenz/villa residenzen/villen = residence residences
casual thing f bruchbude bruchbuden = shack/hovel shacks/hovels
rare thing n denkmal denkmäler = monument monuments
rare thing f laterne laternen = lantern lanterns
rare thing m springbrunnen springbrunnen = fountain fountains
rare thing f litfaßsäule litfaßsäulen = advertising_pillar advertising_pillars
person wartet warten gewartet = waits wait waited
person tanzt tanzen getanzt = dances dance danced
sein person bummelt/schlendert bummeln/schlendern gebummelt/geschlendert = strolls stroll strolled
formal person plaudert plaudern geplaudert = converses converse conversed
casual person tratscht tratschen getratscht = gossips gossip gossiped
beast bellt/kläfft bellen/kläffen gebellt/gekläfft = barks/yaps bark/yap barked/yapped
beast knurrt knurren geknurrt = growls/snarls growl/snarl growled/snarled
sein beast flattert flattern geflattert = flutters flutter fluttered
person>thing findet finden gefunden = finds find found
person>thing ab+schließt/ab+sperrt ab+schließen/ab+sperren ab+geschlossen/ab+gesperrt = locks lock locked
person>thing vergleicht vergleichen verglichen = compares compare compared
person>thing aus+sucht aus+suchen aus+gesucht = selects/chooses select/choose selected/chosen
person>thing ab+reißt ab+reißen ab+gerissen = demolishes demolish demolished
person>thing filmt filmen gefilmt = films film filmed
formal person>thing besitzt besitzen besessen = possesses/owns possess/own possessed/owned
casual person>thing klaut/mopst klauen/mopsen geklaut/gemopst = swipes/nicks swipe/nick swiped/nicked
rare person>thing pachtet pachten gepachtet = leases lease leased
person>beast führt führen geführt = leads lead led
person>beast vertreibt vertreiben vertrieben = drives_off drive_off driven_off
person>person trifft treffen getroffen = meets meet met
person>person aus+raubt aus+rauben aus+geraubt = robs/mugs rob/mug robbed/mugged
formal person>person heiratet heiraten geheiratet = weds wed wedded
casual person>person ab+knutscht ab+knutschen ab+geknutscht = smooches smooch smooched
rare person>person foppt foppen gefoppt = hoaxes hoax hoaxed
beast>thing trägt tragen getragen = carries carry carried
beast>thing zerbeißt zerbeißen zerbissen = chews_up chew_up chewed_up
beast>beast hetzt hetzen gehetzt = hounds hound hounded
person>self kämmt kämmen gekämmt = combs comb combed
person>self betrügt/belügt betrügen/belügen betrogen/belogen = deceives/cheats deceive/cheat deceived/cheated
person~ an+stellt an+stellen an+gestellt = queues_up queue_up queued_up
person~ irrt irren geirrt = errs err erred
formal person~ ziert zieren geziert = demurs demur demurred
casual person~ fläzt fläzen gefläzt = sprawls sprawl sprawled
quad baut bauen gebaut = builds build built
quad mietet mieten gemietet = rents rent rented
crossed bauen mieten architekt kaufmann haus büro
place in_der_Stadt = in_town/in_the_city
place auf_dem_Markt = at_the_market
place an_der_Ecke = at_the_corner
place im_Café = in_the_café
place vor_dem_Rathaus = in_front_of_the_town_hall
place hinter_dem_Museum = behind_the_museum
""",
    "hospital": """
man m arzt ärzte = doctor doctors
man m pfleger pfleger = orderly orderlies
man m patient patienten patienten = patient patients
man m chirurg chirurgen chirurgen = surgeon surgeons
formal man m mediziner mediziner = physician physicians
casual man m doktor doktoren = doc docs
rare man m sanitäter sanitäter = paramedic paramedics
woman f krankenschwester krankenschwestern = nurse nurses
woman f ärztin ärztinnen = lady_doctor lady_doctors
woman f therapeutin therapeutinnen = therapist therapists
formal woman f oberschwester oberschwestern = matron matrons
casual woman f nervensäge nervensägen = nuisance nuisances
rare woman f hebamme hebammen = midwife midwives
beast f mücke/stechmücke mücken/stechmücken = mosquito/gnat mosquitoes/gnats
beast m floh flöhe = flea fleas
beast f schnecke schnecken = snail/slug snails/slugs
beast f laus läuse = louse lice
formal beast m parasit parasiten parasiten = parasite parasites
casual beast n viech viecher = critter critters
rare beast m kanarienvogel kanarienvögel = canary canaries
rare beast m blutegel blutegel = leech leeches
rare beast f zecke zecken = tick ticks
thing f spritze spritzen = syringe syringes
thing f schiene schienen = splint splints
thing n bett betten = bed beds
thing f decke decken = blanket blankets  # one German noun for two English ones
thing f decke decken = ceiling ceilings
thing m verband verbände = bandage/dressing bandages/dressings
thing f wunde/verletzung wunden/verletzungen = wound/injury wounds/injuries
thing n pflaster pflaster = plaster plasters
thing m zahn zähne = tooth teeth
thing n kissen/polster kissen/polster = pillow/cushion pillows/cushions
thing m krankenwagen/rettungswagen krankenwagen/rettungswagen = ambulance ambulances
thing n wartezimmer wartezimmer = waiting_room waiting_rooms
thing m operationssaal operationssäle = operating_theatre operating_theatres
thing f salbe salben = ointment ointments
formal thing f arznei arzneien = remedy remedies
casual thing f pille pillen = pill pills
formal thing n präparat präparate = preparation preparations
casual thing n mittelchen mittelchen = potion potions
rare thing n skalpell skalpelle = scalpel scalpels
rare thing f krücke krücken = crutch crutches
rare thing m tropf tropfe = drip drips
rare thing f prothese prothesen = artificial_limb artificial_limbs
person hustet husten gehustet = coughs cough coughed
person weint weinen geweint = weeps/sobs weep/sob wept/sobbed
sein person stirbt sterben gestorben = dies die died
formal person leidet leiden gelitten = suffers suffer suffered
casual person jammert jammern gejammert = whines/moans whine/moan whined/moaned
rare person röchelt röcheln geröchelt = wheezes wheeze wheezed
beast zuckt zucken gezuckt = twitches/jerks twitch/jerk twitched/jerked
beast niest niesen geniest = sneezes sneeze sneezed
sein beast kriecht kriechen gekrochen = creeps creep crept
person>thing schiebt schieben geschoben = pushes/shoves push/shove pushed/shoved
person>thing ab+nimmt ab+nehmen ab+genommen = detaches detach detached
person>thing wischt wischen gewischt = wipes wipe wiped
person>thing auf+schneidet auf+schneiden auf+geschnitten = slices slice sliced
person>thing näht nähen genäht = sews/stitches sew/stitch sewn/stitched
person>thing ein+reibt ein+reiben ein+gerieben = rubs rub rubbed
formal person>thing verschreibt verschreiben verschrieben = prescribes prescribe prescribed
casual person>thing rum+reicht rum+reichen rum+gereicht = passes_along pass_along passed_along
rare person>thing schwenkt schwenken geschwenkt = swings swing swung
person>beast impft impfen geimpft = vaccinates vaccinate vaccinated
person>beast tötet töten getötet = kills kill killed
person>person pflegt pflegen gepflegt = looks_after/tends look_after/tend looked_after/tended
person>person an+ruft an+rufen an+gerufen = phones/rings_up phone/ring_up phoned/rung_up
formal person>person ein+weist ein+weisen ein+gewiesen = hospitalises hospitalise hospitalised
casual person>person nervt nerven genervt = bugs bug bugged
beast>thing verdirbt verderben verdorben = spoils/ruins spoil/ruin spoilt/ruined
beast>thing um+kippt um+kippen um+gekippt = tips_over tip_over tipped_over
beast>beast zwickt/kneift zwicken/kneifen gezwickt/gekniffen = pinches pinch pinched
person>self sticht stechen gestochen = pricks prick pricked
person>self stützt stützen gestützt = supports/steadies support/steady supported/steadied
formal person>self schont schonen geschont = spares spare spared
casual person>self piekst pieksen gepiekst = jabs jab jabbed
person~ hin+legt hin+legen hin+gelegt = lies_down lie_down lain_down
person~ sorgt/grämt sorgen/grämen gesorgt/gegrämt = worries/grieves worry/grieve worried/grieved
formal person~ quält quälen gequält = agonises agonise agonised
casual person~ aus+heult aus+heulen aus+geheult = blubbers blubber blubbered
quad holt holen geholt = fetches fetch fetched
quad wechselt wechseln gewechselt = changes change changed
crossed holen wechseln arzt pfleger spritze schiene
place im_Krankenhaus = in_hospital
place auf_der_Station = on_the_ward
place am_Empfang = at_reception
place im_Labor = in_the_laboratory/in_the_lab
place hinter_dem_Vorhang = behind_the_curtain
place vor_der_Notaufnahme = in_front_of_the_emergency_department
""",
}

GENERAL: Final = """
time heute = today
time oft/häufig = often/frequently
time jetzt = now
time noch_einmal/erneut = again
time jedes_Mal = every_time
time heute_früh = this_morning
time heute_Abend = tonight
time jeden_Tag/täglich = every_day/daily
time manchmal = sometimes
time montags = on_Mondays
time freitags = on_Fridays
time am_Wochenende = at_the_weekend
time nachts = at_night
time morgens = in_the_morning
time im_Sommer = in_summer
time im_Winter = in_winter
time plötzlich/auf_einmal = suddenly
time immer_wieder = repeatedly
time nach_und_nach = gradually
time endlich/schließlich = at_last/finally
formal time gegenwärtig = at_present
formal time unverzüglich = without_delay
formal time gelegentlich = on_occasion
casual time andauernd = non_stop
casual time grad = right_now
casual time ab_und_zu = every_now_and_then
adjective alt = old
adjective klein = small/little
adjective groß = big/large
adjective jung = young
adjective neu = new
adjective schön = beautiful/lovely
adjective stark = strong
adjective klug/schlau = clever/smart
adjective freundlich/nett = friendly/nice
adjective schnell/rasch = quick/fast
adjective langsam = slow
adjective schwer = heavy
adjective dick = fat
adjective dünn = thin
adjective lang = long
adjective kurz = short
adjective schwarz = black
adjective grün = green
adjective blau = blue
adjective braun = brown
adjective grau = grey
adjective gelb = yellow
adjective bunt = colourful
adjective hübsch = pretty
adjective schmutzig/dreckig = dirty/filthy
adjective nass = wet
adjective rund = round
adjective laut = loud/noisy
adjective ruhig = calm
adjective seltsam/merkwürdig = strange/odd/peculiar
adjective berühmt = famous
adjective lustig/komisch = funny
adjective traurig = sad
adjective ernst = serious
adjective krank = sick/ill
adjective gesund = healthy
adjective hungrig = hungry
adjective kühn/beherzt = brave
adjective wild = wild
adjective sanft = gentle
adjective schwach = weak
adjective faul = lazy
adjective fleißig = diligent
adjective treu = faithful/loyal
adjective stolz = proud
adjective fremd = foreign
adjective riesig/gewaltig = huge/enormous
adjective winzig = tiny
adjective wertvoll/kostbar = valuable/precious
conjunction weil = because/since
conjunction obwohl = although/though
conjunction wenn = when
conjunction wenn = if
conjunction während = while/whilst
conjunction sobald = as_soon_as
conjunction solange = as_long_as
conjunction damit = so_that
formal conjunction da = as
formal conjunction sofern = provided_that
say sagt sagen gesagt = says say said
say denkt denken gedacht = thinks think thought
say glaubt glauben geglaubt = believes believe believed
say weiß wissen gewusst = knows know known
say hofft hoffen gehofft = hopes hope hoped
say ahnt/spürt ahnen/spüren geahnt/gespürt = senses/feels sense/feel sensed/felt
formal say gesteht gestehen gestanden = confesses confess confessed
casual say schwört schwören geschworen = swears swear sworn
formal say beweist beweisen bewiesen = proves prove proven
casual say meint meinen gemeint = reckons reckon reckoned
formal say verspricht versprechen versprochen = promises promise promised
casual say flunkert flunkern geflunkert = fibs fib fibbed
number zwei = two
number drei = three
number vier = four
number fünf = five
number sechs = six
number sieben = seven
number acht = eight
number neun = nine
number zehn = ten
number elf = eleven
number zwölf = twelve
number zwanzig = twenty
number hundert = one_hundred
number dreißig = thirty
number fünfzig = fifty
number dreizehn = thirteen
number vierzehn = fourteen
number fünfzehn = fifteen
number sechzehn = sixteen
number siebzehn = seventeen
number achtzehn = eighteen
number neunzehn = nineteen
number vierzig = forty
number sechzig = sixty
number siebzig = seventy
number achtzig = eighty
number neunzig = ninety
number einundzwanzig = twenty_one
number zweiundzwanzig = twenty_two
number dreiundzwanzig = twenty_three
number vierundzwanzig = twenty_four
number sechsundzwanzig = twenty_six
number siebenundzwanzig = twenty_seven
number achtundzwanzig = twenty_eight
number fünfundzwanzig = twenty_five
number neunundzwanzig = twenty_nine
number einunddreißig = thirty_one
number zweiunddreißig = thirty_two
number sechsunddreißig = thirty_six
number dreiundvierzig = forty_three
number achtundvierzig = forty_eight
number vierundfünfzig = fifty_four
number siebenundsechzig = sixty_seven
number zweiundsiebzig = seventy_two
number einundachtzig = eighty_one
number achtundneunzig = ninety_eight
"""


Words = tuple[str, ...]
Register = Literal["formal", "casual"]
Gender = Literal["m", "f", "n"]

NOUN_KINDS: Final = ("man", "woman", "beast", "thing")
VERB_KINDS: Final = (
    "person",
    "beast",
    "person>thing",
    "person>beast",
    "person>person",
    "beast>thing",
    "beast>beast",
    "person>self",
    "person~",
    "quad",
    "say",
)
PHRASE_KINDS: Final = ("place", "time", "adjective", "conjunction", "number")
ADJECTIVE_ENDINGS: Final = ("e", "em", "en", "er", "es")
_GENDERS: Final[dict[str, Gender]] = {"m": "m", "f": "f", "n": "n"}
_REGISTERS: Final[dict[str, Register]] = {"formal": "formal", "casual": "casual"}


@dataclass(frozen=True)
class GermanNoun:
    """The forms of a German noun; `oblique` is the singular of accusative and dative."""

    singular: str
    plural: str
    oblique: str

    @property
    def dative_plural(self) -> str:
        """The plural after a dative article: with an n, unless it ends in n or s.

        >>> GermanNoun("tisch", "tische", "tisch").dative_plural, GermanNoun("test", "tests", "test").dative_plural
        ('tischen', 'tests')
        """
        return self.plural if self.plural.endswith(("n", "s")) else f"{self.plural}n"


@dataclass(frozen=True)
class EnglishNoun:
    """The forms of an English noun, each of one word or more."""

    singular: Words
    plural: Words


@dataclass(frozen=True)
class GermanVerb:
    """The forms of a German verb without its particle, which is empty unless the verb is separable.

    The finite forms are used as they are in a main clause (the particle at its end) and joined to the particle in a
    verb-final one; infinitive and participle are always joined to it.
    """

    particle: str
    singular: str
    plural: str
    participle: str

    def joined(self, form: str) -> str:
        """One of the forms with the particle before it.

        >>> verb = GermanVerb("auf", "macht", "machen", "gemacht")
        >>> verb.joined(verb.singular), verb.joined(verb.participle)
        ('aufmacht', 'aufgemacht')
        """
        return self.particle + form


@dataclass(frozen=True)
class EnglishVerb:
    """The forms of an English verb, each of one word or more: picks up, pick up, picked up."""

    singular: Words
    base: Words
    participle: Words


@dataclass(frozen=True)
class Noun:
    """A meaning expressed by nouns: German and English synonyms, the most usual first."""

    kind: str
    gender: Gender
    register: Register | None
    rare: bool
    german: tuple[GermanNoun, ...]
    english: tuple[EnglishNoun, ...]
    line: int


@dataclass(frozen=True)
class Verb:
    """A meaning expressed by verbs; `kind` is the frame and `sein` says how the German perfect is formed."""

    kind: str
    register: Register | None
    rare: bool
    sein: bool
    german: tuple[GermanVerb, ...]
    english: tuple[EnglishVerb, ...]
    line: int


@dataclass(frozen=True)
class Phrase:
    """A meaning expressed by words that do not change; of an adjective, the German word is the stem."""

    kind: str
    register: Register | None
    rare: bool
    german: tuple[Words, ...]
    english: tuple[Words, ...]
    line: int


@dataclass(frozen=True)
class Crossed:
    """A crossed quadruple, named by German forms: subject i, doing verb j, prefers object i xor j."""

    verbs: tuple[str, str]
    subjects: tuple[str, str]
    objects: tuple[str, str]
    line: int


Entry = Noun | Verb | Phrase | Crossed


@dataclass(frozen=True)
class _Flags:
    """What may stand before the kind of an entry."""

    register: Register | None
    rare: bool
    sein: bool


@cache
def entries(topic: str) -> tuple[Entry, ...]:
    """The entries of a topic's table, in its order; those of every topic under the name `general`."""
    table = GENERAL if topic == "general" else TOPICS[topic]
    return parse(table)


def parse(table: str) -> tuple[Entry, ...]:
    """Read a table; a malformed line raises ValueError with its number and text.

    >>> parse("casual man m typ typen = guy/chap guys/chaps")[0].english[1].plural
    ('chaps',)
    """
    found: list[Entry] = []
    for number, line in enumerate(table.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if content:
            try:
                found.append(_entry(content, number))
            except ValueError as problem:
                raise ValueError(f"lexicon line {number}, {content!r}: {problem}") from problem
    return tuple(found)


def _entry(content: str, line: int) -> Entry:
    """Read one entry, by its kind."""
    left, equals, right = content.partition("=")
    flags, fields = _flags(left.split())
    if not fields:
        raise ValueError("the kind is missing")
    kind, columns, english = fields[0], fields[1:], right.split()
    if kind == "crossed":
        return _crossed(columns, flags, bool(equals), line)
    if not equals:
        raise ValueError("no = between German and English")
    if flags.sein and (kind not in VERB_KINDS or kind == "quad"):
        raise ValueError("the flag sein is for verbs, and not for quad")
    if kind in NOUN_KINDS and columns and columns[0] in _GENDERS:
        return _noun(kind, columns, english, flags, line)
    if kind in VERB_KINDS:
        return _verb(kind, columns, english, flags, line)
    if kind in PHRASE_KINDS:
        sides = [tuple(words for (words,) in _synonyms(side, (1,))) for side in (columns, english)]
        return Phrase(kind, flags.register, flags.rare, sides[0], sides[1], line)
    raise ValueError(f"{kind} is no kind of entry, or the gender of a noun is missing")


def _flags(fields: list[str]) -> tuple[_Flags, list[str]]:
    """The flags at the beginning of an entry, and the fields after them."""
    given: list[str] = []
    while len(given) < len(fields) and fields[len(given)] in (*_REGISTERS, "rare", "sein"):
        given.append(fields[len(given)])
    registers = [_REGISTERS[flag] for flag in given if flag in _REGISTERS]
    if len(registers) > 1 or len(set(given)) < len(given):
        raise ValueError("a flag is given twice, or two registers")
    flags = _Flags(registers[0] if registers else None, "rare" in given, "sein" in given)
    return flags, fields[len(given) :]


def _synonyms(columns: list[str], allowed: tuple[int, ...]) -> list[tuple[Words, ...]]:
    """The columns of one side as a list of synonyms, each the tuple of its forms.

    >>> _synonyms(["goes_out/leaves", "go_out/leave"], (2,))
    [(('goes', 'out'), ('go', 'out')), (('leaves',), ('leave',))]
    """
    if len(columns) not in allowed:
        raise ValueError(f"{len(columns)} columns where {' or '.join(map(str, allowed))} should be")
    by_column = [[tuple(form.split("_")) for form in column.split("/")] for column in columns]
    if len({len(column) for column in by_column}) > 1:
        raise ValueError("columns of one side with different numbers of synonyms")
    if any("" in form for column in by_column for form in column):
        raise ValueError("an empty word")
    synonyms = list(zip(*by_column, strict=True))
    if len(set(synonyms)) < len(synonyms):
        raise ValueError("a synonym is given twice")
    return synonyms


def _single(forms: tuple[Words, ...]) -> Words:
    """German nouns and verbs are single words: the forms of one, without the tuple around each."""
    if any(len(form) > 1 for form in forms):
        raise ValueError("a German noun or verb of several words")
    return tuple(form[0] for form in forms)


def _noun(kind: str, columns: list[str], english: list[str], flags: _Flags, line: int) -> Noun:
    """Read the columns of a noun; one that is not weak has its singular in every case."""
    synonyms = [_single(forms) for forms in _synonyms(columns[1:], (2, 3))]
    return Noun(
        kind,
        _GENDERS[columns[0]],
        flags.register,
        flags.rare,
        tuple(GermanNoun(forms[0], forms[1], forms[-1] if len(forms) == 3 else forms[0]) for forms in synonyms),
        tuple(EnglishNoun(singular, plural) for singular, plural in _synonyms(english, (2,))),
        line,
    )


def _verb(kind: str, columns: list[str], english: list[str], flags: _Flags, line: int) -> Verb:
    """Read the columns of a verb, whose synonyms must have the same particle: the grammar places it once for all."""
    german = tuple(_german_verb(_single(forms)) for forms in _synonyms(columns, (3,)))
    if len({word.particle for word in german}) > 1:
        raise ValueError("synonyms with different particles")
    return Verb(
        kind,
        flags.register,
        flags.rare,
        flags.sein,
        german,
        tuple(EnglishVerb(singular, base, participle) for singular, base, participle in _synonyms(english, (3,))),
        line,
    )


def _german_verb(forms: Words) -> GermanVerb:
    """Part the particle of a separable verb, which must be the same in all columns."""
    particles, _, heads = zip(*(form.rpartition("+") for form in forms), strict=True)
    if len(set(particles)) > 1:
        raise ValueError("the particle of a separable verb must stand in all its columns")
    return GermanVerb(particles[0], *heads)


def _crossed(names: list[str], flags: _Flags, equals: bool, line: int) -> Crossed:
    """Read the six names of a crossed quadruple."""
    if len(names) != 6 or equals or flags != _Flags(None, rare=False, sein=False):
        raise ValueError("a crossed line has six German names, no flags and no English")
    return Crossed((names[0], names[1]), (names[2], names[3]), (names[4], names[5]), line)
